#include "base/interface_watch.hpp"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace fairlead::base {

bool has_interface(std::uint32_t index) {
  std::array<char, IF_NAMESIZE> name;
  return ::if_indextoname(index, name.data()) != nullptr;
}

Result<InterfaceWatch> InterfaceWatch::open() {
  FileDescriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  sockaddr_nl groups{};
  groups.nl_family = AF_NETLINK;
  groups.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (!socket.is_open() || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&groups), sizeof groups) != 0) {
    return std::unexpected(Error{Status::system, errno, "the kernel does not tell of interfaces (netlink)"});
  }
  return InterfaceWatch(std::move(socket));
}

void InterfaceWatch::drain() {
  std::array<std::byte, 8192> ignored;
  constexpr int kMessagesMost = 1000;
  for (int i = 0; i < kMessagesMost; ++i) {
    // A lost notification (ENOBUFS) counts as one, too.
    if (::recv(socket_.get(), ignored.data(), ignored.size(), 0) < 0 && errno != ENOBUFS) break;
  }
}

}  // namespace fairlead::base
