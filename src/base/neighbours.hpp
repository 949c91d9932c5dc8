#pragma once
// The kernel's table of neighbours: the hosts of directly connected networks, with their hardware addresses.

#include "base/socket_address.hpp"

namespace fairlead::base {

/// Returns whether the kernel asked for the hardware address of a host (ARP, neighbour discovery), and has no answer.
/// False if the host is behind a router, or was never asked for. Does not wait.
bool is_neighbour_missing(const SocketAddress& address);

}  // namespace fairlead::base
