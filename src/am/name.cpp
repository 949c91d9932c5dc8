#include <fairlead/am/name.hpp>

#include <fmt/format.h>

#include "base/socket_address.hpp"

namespace fairlead::am {

std::string Name::to_string() const {
  return fmt::format("{}/{:#x}", base::SocketAddress{.ip = ip, .scope = 0, .port = udp_port}.to_string(), endpoint);
}

}  // namespace fairlead::am
