#pragma once
// Looks host names up, by the system's resolver.

#include <string>
#include <vector>

#include "base/socket_address.hpp"

namespace fairlead::base {

/// Returns the IP addresses (port 0) of a host, the preferred one first; an address in digits is its own name. May wait
/// seconds for name servers. `not_available`: the name is unknown.
Result<std::vector<SocketAddress>> addresses_of_host(const std::string& name);

}  // namespace fairlead::base
