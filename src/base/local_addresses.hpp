#pragma once
// The IP addresses of this host's interfaces.

#include <vector>

#include "base/socket_address.hpp"

namespace fairlead::base {

/// Addresses (port 0) of all interfaces that are up, in the kernel's order, each once.
Result<std::vector<SocketAddress>> local_addresses();

}  // namespace fairlead::base
