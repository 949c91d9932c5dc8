#pragma once
// A parsed address of a transfer machine (docs/net.md, "Addresses"). Parsing checks text and numbers only. Whether the
// nid is local and the port is free shows at the start.

#include <cstdint>
#include <string>
#include <string_view>

#include <fairlead/error.hpp>

#include "engine/core.hpp"

namespace fairlead::net {

inline constexpr std::uint32_t kTmidBits = 12;
inline constexpr std::uint32_t kTmidMax = (1U << kTmidBits) - 1;
inline constexpr std::uint32_t kPortalMax = 63;

struct NetAddress {
  base::SocketAddress engine;  // its port is the pid; 0 stands for `*`
  std::uint32_t portal = 0;    // unchecked: start() refuses values outside 1..kPortalMax, as Motr does
  std::uint32_t tmid = 0;      // 0 stands for `*`

  bool has_star() const { return engine.port == 0 || tmid == 0; }
  bool has_good_portal() const { return portal >= 1 && portal <= kPortalMax; }
  std::uint32_t port() const { return portal << kTmidBits | tmid; }
};

bool is_lo(const base::SocketAddress& engine);

/// Returns whether datagrams can pass between the two: both are loopback, both IPv4, or both IPv6.
bool is_same_network(const base::SocketAddress& a, const base::SocketAddress& b);

/// On `invalid`, the message names the malformed part and the right form.
Result<NetAddress> parse_address(std::string_view text);

/// Returns for example "10.0.0.5@udp", "[::1]@udp" or "0@lo".
std::string nid_text(const base::SocketAddress& engine);

std::string address_text(const engine::RemotePort& remote);

}  // namespace fairlead::net
