#pragma once
// What the way to a peer lets through: the direction that a firewall blocks, and the sizes of datagrams both ways.

#include <optional>
#include <string>

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

/// Returns nullopt if `known`, the machine's description of the peer, names none: the peer is not reached over UDP.
std::optional<DatagramSizes> datagram_sizes_in(const std::string& known, const Way& way);
/// Returns whether probes of the path MTU can show nothing more.
bool are_final(const DatagramSizes& sizes);
Finding judge(const DatagramSizes& sizes);

/// Returns the text between two others; empty if it is not there.
std::string between(const std::string& text, std::string_view before, std::string_view after);

}  // namespace fairlead::tools
