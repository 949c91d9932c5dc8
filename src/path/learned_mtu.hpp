#pragma once
// What the kernel keeps of a route because somebody told it by ICMP.

#include <cstdint>
#include <optional>

#include "base/socket_address.hpp"

namespace fairlead::path {

/// If the kernel has learned the MTU of the route to `peer` from the network: that of the interface that it begins
/// with. Nothing otherwise, also if the kernel cannot be asked.
std::optional<std::uint32_t> interface_mtu_if_learned(const base::SocketAddress& local,
                                                      const base::SocketAddress& peer);

}  // namespace fairlead::path
