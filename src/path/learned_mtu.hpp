#pragma once
// Tells whether the kernel's MTU of a route comes from ICMP.

#include <cstdint>
#include <optional>

#include "base/socket_address.hpp"

namespace fairlead::path {

/// If the kernel learned the MTU of the route to `peer` from the network, returns the MTU of the route's first
/// interface. Otherwise, or if the kernel cannot be asked, returns nothing.
std::optional<std::uint32_t> interface_mtu_if_learned(const base::SocketAddress& local,
                                                      const base::SocketAddress& peer);

}  // namespace fairlead::path
