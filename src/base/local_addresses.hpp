#pragma once
// The IP addresses of this host's interfaces.

#include <cstdint>
#include <string>
#include <vector>

#include "base/socket_address.hpp"

namespace fairlead::base {

/// An address, and the interface that has it.
struct Interface {
  std::string name;
  std::uint32_t index = 0;
  SocketAddress address;  // port 0
};

/// Returns all interfaces that are up, once per address, in the kernel's order.
Result<std::vector<Interface>> local_interfaces();

/// Returns the addresses (port 0) of all interfaces that are up, in the kernel's order, each once.
Result<std::vector<SocketAddress>> local_addresses();

}  // namespace fairlead::base
