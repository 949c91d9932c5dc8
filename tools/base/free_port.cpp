#include "tools/base/free_port.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/file_descriptor.hpp"

namespace fairlead::tools {

std::uint16_t free_port(int kind) {
  const base::FileDescriptor probe(::socket(AF_INET, kind | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t size = sizeof any;
  auto* const address = reinterpret_cast<sockaddr*>(&any);
  const bool is_bound = ::bind(probe.get(), address, size) == 0 && ::getsockname(probe.get(), address, &size) == 0;
  return is_bound ? ntohs(any.sin_port) : 0;
}

}  // namespace fairlead::tools
