#include "path/group_sockets.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/local_addresses.hpp"

namespace fairlead::path {
namespace {

template <typename Value>
bool set_socket_option(const base::FileDescriptor& socket, int level, int name, const Value& value) {
  return ::setsockopt(socket.get(), level, name, &value, sizeof value) == 0;
}

in_addr ipv4_of(const base::SocketAddress& address) {
  in_addr out;
  std::memcpy(&out, address.ip.data() + 12, sizeof out);
  return out;
}

/// Makes multicast leave by the interface of `local`.
bool choose_interface(const base::FileDescriptor& socket, const base::SocketAddress& local, std::uint32_t interface) {
  if (!local.is_v4()) return set_socket_option(socket, IPPROTO_IPV6, IPV6_MULTICAST_IF, static_cast<int>(interface));
  return set_socket_option(socket, IPPROTO_IP, IP_MULTICAST_IF, ip_mreqn{{}, ipv4_of(local), 0});
}

bool join_at(const base::FileDescriptor& socket, const base::SocketAddress& group, const base::SocketAddress& local,
             std::uint32_t interface) {
  if (local.is_v4()) {
    const ip_mreqn wanted{ipv4_of(group), ipv4_of(local), 0};
    return set_socket_option(socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, wanted) &&
           set_socket_option(socket, IPPROTO_IP, IP_MULTICAST_ALL, 0);
  }
  ipv6_mreq wanted{};
  std::memcpy(&wanted.ipv6mr_multiaddr, group.ip.data(), group.ip.size());
  wanted.ipv6mr_interface = interface;
  constexpr int kMulticastAllV6 = 29;  // IPV6_MULTICAST_ALL
  return set_socket_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
         set_socket_option(socket, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, wanted) &&
         set_socket_option(socket, IPPROTO_IPV6, kMulticastAllV6, 0);
}

std::string_view remedy_for(int number) {
  switch (number) {
    case ENODEV:
    case EADDRNOTAVAIL:
      return "no interface has that address: choose another device (ip addr)";
    case ENETUNREACH:
      return "there is no route to the group: let the interface have one, and the flag MULTICAST (ip link set dev NAME "
             "multicast on; ip route add 224.0.0.0/4 dev NAME; ip -6 route add ff00::/8 dev NAME table local)";
    case ENOBUFS:
    case ENOMEM:
      return "the host is in as many groups as it may be: raise net.ipv4.igmp_max_memberships";
    case EADDRINUSE:
      return "another program holds the group's port alone (ss -ulpn): end it, or choose another port_first";
    case EMFILE:
    case ENFILE:
      return "there are no descriptors left: raise the limit of open files (ulimit -n)";
    default:
      return "multicast is not to be had there";
  }
}

std::unexpected<Error> cannot_join(const base::SocketAddress& group, const base::SocketAddress& local, int number) {
  return std::unexpected(Error{Status::not_available, number,
                               fmt::format("cannot join the group {} at {}: {}: {}", group.ip_text(), local.ip_text(),
                                           std::strerror(number), remedy_for(number))});
}

int family_of(const base::SocketAddress& address) {
  return address.is_v4() ? AF_INET : AF_INET6;
}

base::FileDescriptor open_datagram_socket(const base::SocketAddress& local) {
  return base::FileDescriptor(::socket(family_of(local), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

struct KernelAddress {
  explicit KernelAddress(const base::SocketAddress& address)
      : length(address.to_kernel(reinterpret_cast<sockaddr*>(&storage), family_of(address))) {}
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }

  sockaddr_storage storage{};
  unsigned length;
};

}  // namespace

GroupSockets::GroupSockets(const base::SocketAddress& local) : local_(local), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  local_.port = 0;
  if (local_.is_v4()) return;
  for (const base::Interface& each : base::local_interfaces().value_or(std::vector<base::Interface>()))
    if (each.address.ip == local_.ip && (local_.scope == 0 || local_.scope == each.index)) interface_ = each.index;
}

/// Connects a probe socket: that shows whether there is a route, without sending anything.
Result<> GroupSockets::check_route(const base::SocketAddress& group) const {
  const base::FileDescriptor probe = open_datagram_socket(local_);
  const bool is_reachable = probe.is_open() && choose_interface(probe, local_, interface_) &&
                            ::connect(probe.get(), KernelAddress(group).get(), KernelAddress(group).length) == 0;
  if (!is_reachable) return cannot_join(group, local_, errno);
  return {};
}

Result<base::FileDescriptor> GroupSockets::open_member(const base::SocketAddress& group) const {
  if (auto reachable = check_route(group); !reachable) return std::unexpected(std::move(reachable.error()));
  base::FileDescriptor socket = open_datagram_socket(local_);
  const KernelAddress at(group);
  const bool is_ready = socket.is_open() && set_socket_option(socket, SOL_SOCKET, SO_REUSEADDR, 1) &&
                        join_at(socket, group, local_, interface_) && ::bind(socket.get(), at.get(), at.length) == 0;
  epoll_event event{.events = EPOLLIN, .data = {.fd = socket.get()}};
  if (!is_ready || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0)
    return cannot_join(group, local_, errno);
  return socket;
}

Result<> GroupSockets::join(const base::SocketAddress& asked) {
  base::SocketAddress group = asked;
  if (!group.is_v4()) group.scope = interface_;
  const auto known = std::ranges::find(members_, group, &Member::group);
  if (known != members_.end()) {
    ++known->users;
    return {};
  }
  if (members_.size() == kGroupsMost) {
    return std::unexpected(Error{Status::no_memory, ENOMEM,
                                 fmt::format("cannot join the group {}: this device is in {} already: leave one",
                                             group.ip_text(), kGroupsMost)});
  }
  auto socket = open_member(group);
  if (!socket) return std::unexpected(std::move(socket.error()));
  if (!buffers_) buffers_ = std::make_unique_for_overwrite<std::byte[]>(kInOneLook * kDatagramMost);
  members_.push_back({group, std::move(*socket), 1});
  return {};
}

void GroupSockets::leave(const base::SocketAddress& asked) {
  base::SocketAddress group = asked;
  if (!group.is_v4()) group.scope = interface_;
  const auto known = std::ranges::find(members_, group, &Member::group);
  if (known == members_.end() || --known->users != 0) return;
  // A child of fork() may share the socket, and then closing it would not remove it from the epoll set.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, known->socket.get(), nullptr);
  members_.erase(known);
}

/// Returns 0 or an errno.
int GroupSockets::open_sender() {
  base::FileDescriptor socket = open_datagram_socket(local_);
  const KernelAddress from(local_);
  const bool is_ready =
      socket.is_open() && ::bind(socket.get(), from.get(), from.length) == 0 &&
      choose_interface(socket, local_, interface_) &&
      (local_.is_v4() ? set_socket_option(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT)
                      : set_socket_option(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT));
  if (!is_ready) return errno;
  sender_ = std::move(socket);
  routers_set_ = -1;
  return 0;
}

int GroupSockets::send(const base::SocketAddress& group, std::span<const iovec> pieces, std::uint8_t routers) {
  if (!sender_.is_open()) {
    if (const int error = open_sender(); error != 0) return error;
  }
  // A hop limit of 0 or 1 stays in the local network.
  const int hops = std::max<int>(routers, 1);
  if (hops != routers_set_) {
    const bool is_set = local_.is_v4() ? set_socket_option(sender_, IPPROTO_IP, IP_MULTICAST_TTL, hops)
                                       : set_socket_option(sender_, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, hops);
    if (!is_set) return errno;
    routers_set_ = hops;
  }
  base::SocketAddress to = group;
  if (!to.is_v4()) to.scope = interface_;
  KernelAddress there(to);
  msghdr message{};
  message.msg_name = &there.storage;
  message.msg_namelen = there.length;
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  return ::sendmsg(sender_.get(), &message, MSG_NOSIGNAL) >= 0 ? 0 : errno;
}

std::span<const GroupSockets::Received> GroupSockets::collect() {
  std::array<epoll_event, kInOneLook> ready;
  const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  std::size_t taken = 0;
  // Takes one datagram of each group in turn, so that a busy group does not starve the others.
  for (bool is_any = count > 0; is_any && taken < kInOneLook;) {
    is_any = false;
    for (int i = 0; i < count && taken < kInOneLook; ++i) {
      std::byte* const buffer = buffers_.get() + taken * kDatagramMost;
      sockaddr_storage from{};
      socklen_t length = sizeof from;
      const int socket = ready[static_cast<std::size_t>(i)].data.fd;
      const ssize_t bytes =
          ::recvfrom(socket, buffer, kDatagramMost, MSG_TRUNC, reinterpret_cast<sockaddr*>(&from), &length);
      if (bytes < 0) continue;
      is_any = true;
      const auto sender = base::SocketAddress::from_kernel(reinterpret_cast<sockaddr*>(&from), length);
      const auto member = std::ranges::find(members_, socket, [](const Member& each) { return each.socket.get(); });
      if (!sender || member == members_.end()) continue;
      const bool is_whole = static_cast<std::size_t>(bytes) <= kDatagramMost;
      received_[taken++] = {*sender, member->group, {buffer, is_whole ? static_cast<std::size_t>(bytes) : 0}};
    }
  }
  return std::span(received_).first(taken);
}

}  // namespace fairlead::path
