#pragma once
// What the way to a peer lets through: the direction that a firewall blocks, and the sizes of datagrams both ways.

#include <fairlead/net/peer_facts.hpp>

#include <cstdint>
#include <optional>

#include "base/socket_address.hpp"
#include "tools/doctor/finding.hpp"

namespace fairlead::tools {

/// An engine here, and the peer's.
struct Way {
  base::SocketAddress own, peer;
};

/// Tells in which direction datagrams are dropped, for a peer that was never heard. Takes up to 1.5 s.
Finding find_blocked_direction(const Way& way);

/// The longest datagrams that have passed, as UDP payload in bytes.
struct DatagramSizes {
  std::uint32_t there = 0;
  std::uint32_t back = 0;   // 0: none of the peer's probes has arrived
  std::uint32_t limit = 0;  // what this host's interface takes
};

/// Returns nullopt if the peer is not reached over UDP.
std::optional<DatagramSizes> datagram_sizes_of(const net::PeerFacts& facts, const Way& way);
/// Returns whether probes of the path MTU can show nothing more.
bool are_final(const DatagramSizes& sizes);
Finding judge(const DatagramSizes& sizes);

}  // namespace fairlead::tools
