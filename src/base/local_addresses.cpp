#include "base/local_addresses.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace fairlead::base {

Result<std::vector<Interface>> local_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return std::unexpected(Error{Status::system, errno, "the kernel does not list this host's interfaces"});
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);

  std::vector<Interface> interfaces;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    // Interfaces also list their link-level addresses, which from_kernel() refuses.
    const auto address = SocketAddress::from_kernel(entry->ifa_addr, sizeof(sockaddr_in6));
    if (!address || std::ranges::find(interfaces, *address, &Interface::address) != interfaces.end()) continue;
    interfaces.push_back({entry->ifa_name, ::if_nametoindex(entry->ifa_name), *address});
  }
  return interfaces;
}

Result<std::vector<SocketAddress>> local_addresses() {
  const auto interfaces = local_interfaces();
  if (!interfaces) return std::unexpected(interfaces.error());
  std::vector<SocketAddress> addresses;
  for (const Interface& entry : *interfaces) addresses.push_back(entry.address);
  return addresses;
}

}  // namespace fairlead::base
