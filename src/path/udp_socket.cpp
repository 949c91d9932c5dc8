#include "path/udp_socket.hpp"

#include <fmt/format.h>
#include <linux/errqueue.h>
#include <linux/filter.h>
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace fairlead::path {
namespace {

bool set_option(int descriptor, int level, int name, int value) {
  return ::setsockopt(descriptor, level, name, &value, sizeof(value)) == 0;
}

std::uint32_t granted(int descriptor, int name) {
  int value = 0;
  socklen_t size = sizeof(value);
  ::getsockopt(descriptor, SOL_SOCKET, name, &value, &size);
  return static_cast<std::uint32_t>(std::max(value, 0)) / 2;  // the kernel doubles the requested size, for its overhead
}

/// Returns whether a firewall rejected the datagram, by its own word. The errno does not tell that.
bool is_prohibited(const sock_extended_err& detail) {
  constexpr int kAgainstPolicy = 5;  // ICMPv6: the source address failed a policy
  const int code = detail.ee_code;
  if (detail.ee_origin == SO_EE_ORIGIN_ICMP && detail.ee_type == ICMP_DEST_UNREACH)
    return code == ICMP_NET_ANO || code == ICMP_HOST_ANO || code == ICMP_PKT_FILTERED;
  return detail.ee_origin == SO_EE_ORIGIN_ICMP6 && detail.ee_type == ICMPV6_DEST_UNREACH &&
         (code == ICMPV6_ADM_PROHIBITED || code == kAgainstPolicy);
}

}  // namespace

Result<UdpSocket> UdpSocket::make(int family, bool takes_both, const UdpOptions& options) {
  base::FileDescriptor descriptor(::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!descriptor.is_open()) {
    const int number = errno;
    return std::unexpected(
        Error{Status::system, number,
              fmt::format("cannot make a UDP socket of {}: {}: check the limit of open files (ulimit -n)",
                          family == AF_INET ? "IPv4" : "IPv6", std::strerror(number))});
  }
  const int number = descriptor.get();
  // Don't-fragment: losing one fragment would lose the datagram. The kernel limits datagrams to the interface's MTU
  // only. ICMP messages of routers can be forged, and the link probes the path's MTU itself.
  bool is_ready = set_option(number, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE) || family == AF_INET6;
  is_ready = (set_option(number, IPPROTO_IP, IP_RECVERR, 1) || family == AF_INET6) && is_ready;
  if (family == AF_INET6) {
    is_ready = set_option(number, IPPROTO_IPV6, IPV6_V6ONLY, takes_both ? 0 : 1) && is_ready;
    is_ready = set_option(number, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE) && is_ready;
    is_ready = set_option(number, IPPROTO_IPV6, IPV6_RECVERR, 1) && is_ready;
  }
  if (!is_ready) {
    const int fault = errno;
    return std::unexpected(Error{Status::system, fault,
                                 fmt::format("the kernel refuses don't-fragment or error reports on a UDP socket: {}: "
                                             "Linux 4.18 or newer is needed",
                                             std::strerror(fault))});
  }
  UdpSocket socket(std::move(descriptor), family);
  socket.set_buffers(options);
  socket.probe_offloads(options);
  return socket;
}

Result<UdpSocket> UdpSocket::adopt(base::FileDescriptor descriptor, const UdpOptions& options) {
  const auto option = [&](int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return ::getsockopt(descriptor.get(), SOL_SOCKET, name, &value, &length) == 0 ? value : -1;
  };
  const int family = option(SO_DOMAIN);
  if ((family != AF_INET && family != AF_INET6) || option(SO_TYPE) != SOCK_DGRAM)
    return std::unexpected(Error{Status::invalid, 0, "what was handed over is no UDP socket"});
  UdpSocket socket(std::move(descriptor), family);
  socket.set_buffers(options);
  socket.probe_offloads(options);
  socket.is_merging_ = socket.facts_.has_gro && socket.merge(true);  // what waits already may have been merged
  return socket;
}

void UdpSocket::set_buffers(const UdpOptions& options) {
  const int number = descriptor_.get();
  const int receive = static_cast<int>(std::min<std::uint32_t>(options.receive_buffer_bytes, 1u << 30));
  const int send = static_cast<int>(std::min<std::uint32_t>(options.send_buffer_bytes, 1u << 30));
  // Only the privileged form may exceed net.core.rmem_max. The plain one is silently cut to it, hence facts().
  if (!set_option(number, SOL_SOCKET, SO_RCVBUFFORCE, receive)) set_option(number, SOL_SOCKET, SO_RCVBUF, receive);
  if (!set_option(number, SOL_SOCKET, SO_SNDBUFFORCE, send)) set_option(number, SOL_SOCKET, SO_SNDBUF, send);
  facts_.receive_buffer_granted = granted(number, SO_RCVBUF);
  facts_.send_buffer_granted = granted(number, SO_SNDBUF);
}

// Tests GSO and GRO. The first switch to merging makes the kernel rebuild code, which takes long: do it here, not while
// a datagram waits.
void UdpSocket::probe_offloads(const UdpOptions& options) {
  const int number = descriptor_.get();
  facts_.has_gso = options.wants_gso && set_option(number, IPPROTO_UDP, UDP_SEGMENT, 1472) &&
                   set_option(number, IPPROTO_UDP, UDP_SEGMENT, 0);
  facts_.has_gro =
      options.wants_gro && set_option(number, IPPROTO_UDP, UDP_GRO, 1) && set_option(number, IPPROTO_UDP, UDP_GRO, 0);
}

int UdpSocket::bind_to(const base::SocketAddress& local) {
  sockaddr_storage storage{};
  auto* kernel = reinterpret_cast<sockaddr*>(&storage);
  const unsigned length = local.to_kernel(kernel, family_);
  return ::bind(descriptor_.get(), kernel, length) == 0 ? 0 : errno;
}

int UdpSocket::connect_to(const base::SocketAddress& peer) {
  sockaddr_storage storage{};
  auto* kernel = reinterpret_cast<sockaddr*>(&storage);
  const unsigned length = peer.to_kernel(kernel, family_);
  if (::connect(descriptor_.get(), kernel, length) != 0) return errno;
  peer_ = peer;
  is_connected_ = true;
  return 0;
}

std::optional<base::SocketAddress> UdpSocket::local() const {
  sockaddr_storage storage{};
  auto* kernel = reinterpret_cast<sockaddr*>(&storage);
  socklen_t length = sizeof(storage);
  if (::getsockname(descriptor_.get(), kernel, &length) != 0) return std::nullopt;
  return base::SocketAddress::from_kernel(kernel, length).value_or(base::SocketAddress{});
}

bool UdpSocket::lead_port() {
  sock_filter always_the_first{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program{1, &always_the_first};
  const bool is_leading = share_port(true) && ::setsockopt(descriptor_.get(), SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF,
                                                           &program, sizeof(program)) == 0;
  return share_port(false) && is_leading;
}

bool UdpSocket::share_port(bool is_shared) {
  return set_option(descriptor_.get(), SOL_SOCKET, SO_REUSEPORT, is_shared ? 1 : 0);
}

std::optional<Unreachable> UdpSocket::next_error() {
  if (!has_errors_) return std::nullopt;
  sockaddr_storage target{};
  std::byte payload{};  // the datagram that caused the error is not needed
  iovec piece{&payload, sizeof(payload)};
  alignas(cmsghdr) std::byte control[256];
  msghdr message{};
  message.msg_name = &target;
  message.msg_namelen = sizeof(target);
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (::recvmsg(descriptor_.get(), &message, MSG_ERRQUEUE) < 0) {
    has_errors_ = false;
    return std::nullopt;
  }
  Unreachable found;
  for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr; entry = CMSG_NXTHDR(&message, entry)) {
    const bool is_error = (entry->cmsg_level == IPPROTO_IP && entry->cmsg_type == IP_RECVERR) ||
                          (entry->cmsg_level == IPPROTO_IPV6 && entry->cmsg_type == IPV6_RECVERR);
    if (!is_error) continue;
    sock_extended_err detail{};
    std::memcpy(&detail, CMSG_DATA(entry), sizeof(detail));
    found.system_errno = static_cast<int>(detail.ee_errno);
    found.is_prohibited = is_prohibited(detail);
    found.is_local = detail.ee_origin == SO_EE_ORIGIN_LOCAL;
    const bool is_hint = found.system_errno == EMSGSIZE && !found.is_local;
    const std::uint32_t headers = detail.ee_origin == SO_EE_ORIGIN_ICMP ? 20 + 8 : 40 + 8;
    if (is_hint) found.size_hint = std::max(detail.ee_info, headers + 1) - headers;
  }
  found.to = is_connected_ ? peer_
                           : base::SocketAddress::from_kernel(reinterpret_cast<sockaddr*>(&target), message.msg_namelen)
                                 .value_or(base::SocketAddress{});
  return found;
}

}  // namespace fairlead::path
