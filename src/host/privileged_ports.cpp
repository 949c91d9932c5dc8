#include "host/privileged_ports.hpp"

#include <fstream>

namespace fairlead::host {

std::uint32_t first_unprivileged_port() {
  constexpr std::uint32_t kUsual = 1024;
  std::ifstream setting("/proc/sys/net/ipv4/ip_unprivileged_port_start");
  std::uint32_t first = kUsual;
  return setting >> first ? first : kUsual;
}

}  // namespace fairlead::host
