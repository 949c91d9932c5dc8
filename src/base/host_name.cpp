#include "base/host_name.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "base/shown.hpp"

namespace fairlead::base {

Result<std::vector<SocketAddress>> addresses_of_host(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* all = nullptr;
  const int fault = name.empty() ? EAI_NONAME : getaddrinfo(name.c_str(), nullptr, &hints, &all);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(all, [](addrinfo* one) {
    if (one != nullptr) freeaddrinfo(one);
  });
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = all; fault == 0 && one != nullptr; one = one->ai_next) {
    const auto address = SocketAddress::from_kernel(one->ai_addr, one->ai_addrlen);
    if (address && std::ranges::find(addresses, *address) == addresses.end()) addresses.push_back(*address);
  }
  if (!addresses.empty()) return addresses;
  return std::unexpected(Error{Status::not_available, 0,
                               fmt::format("no address of host \"{}\": {}: is the name right?", shown(name),
                                           fault == 0 ? "it has none of IP" : gai_strerror(fault))});
}

}  // namespace fairlead::base
