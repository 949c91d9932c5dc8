#pragma once
// UDP ports that the kernel lets only privileged processes bind. The daemon may be such a process, and most of its
// applications are not.

#include <cstdint>

namespace fairlead::host {

/// Returns net.ipv4.ip_unprivileged_port_start of this network namespace.
std::uint32_t first_unprivileged_port();
/// Port 0 is not privileged: it stands for any.
inline bool is_privileged(std::uint16_t port) {
  return port != 0 && port < first_unprivileged_port();
}

}  // namespace fairlead::host
