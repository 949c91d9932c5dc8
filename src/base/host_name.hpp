#pragma once
// Hosts by their names, as the system's resolver knows them.

#include <string>
#include <vector>

#include "base/socket_address.hpp"

namespace fairlead::base {

/// The IP addresses (port 0) of a host, the one to use first; an address in digits is its own name. May wait for
/// servers of names, for seconds. `not_available`: nobody knows one.
Result<std::vector<SocketAddress>> addresses_of_host(const std::string& name);

}  // namespace fairlead::base
