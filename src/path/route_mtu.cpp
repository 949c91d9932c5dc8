#include "path/route_mtu.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/file_descriptor.hpp"
#include "path/learned_mtu.hpp"

namespace fairlead::path {
namespace {

constexpr std::uint32_t kUdpHeaderBytes = 8;
constexpr std::uint32_t kIpv4HeaderBytes = 20;
constexpr std::uint32_t kIpv6HeaderBytes = 40;
constexpr std::uint32_t kIpv6MtuMin = 1280;
constexpr std::uint32_t kIpv4TotalMax = 65'535;       // the length field includes the header
constexpr std::uint32_t kIpv6TotalMax = 65'535 + 40;  // the length field excludes the header
constexpr std::uint32_t kUnknown = kIpv6MtuMin - kIpv6HeaderBytes - kUdpHeaderBytes;

std::uint32_t ask_kernel(const base::SocketAddress& local, const base::SocketAddress& peer) {
  const int family = peer.is_v4() ? AF_INET : AF_INET6;
  const base::FileDescriptor scratch(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!scratch.is_open()) return kUnknown;

  sockaddr_storage storage{};
  auto* kernel = reinterpret_cast<sockaddr*>(&storage);
  base::SocketAddress source = local;
  source.port = 0;
  // A wildcard of the other family cannot be expressed in this one. Then the kernel chooses the source, as it does when
  // sending.
  if (const unsigned length = source.to_kernel(kernel, family); length > 0 && source.is_v4() == peer.is_v4()) {
    if (::bind(scratch.get(), kernel, length) != 0) return kUnknown;
  }
  const unsigned length = peer.to_kernel(kernel, family);
  if (::connect(scratch.get(), kernel, length) != 0) return kUnknown;

  int mtu = 0;
  socklen_t size = sizeof(mtu);
  const bool is_v4 = family == AF_INET;
  if (::getsockopt(scratch.get(), is_v4 ? IPPROTO_IP : IPPROTO_IPV6, is_v4 ? IP_MTU : IPV6_MTU, &mtu, &size) != 0)
    return kUnknown;
  if (const auto interface = interface_mtu_if_learned(local, peer)) mtu = static_cast<int>(*interface);
  const std::uint32_t headers = kUdpHeaderBytes + (is_v4 ? kIpv4HeaderBytes : kIpv6HeaderBytes);
  const std::uint32_t total =
      std::min(static_cast<std::uint32_t>(std::max(mtu, 0)), is_v4 ? kIpv4TotalMax : kIpv6TotalMax);
  return std::max(total > headers ? total - headers : 0, kUnknown);
}

}  // namespace

RouteMtu::Answer& RouteMtu::slot(const base::SocketAddress& peer) {
  return answers_[hash_(peer) % answers_.size()];
}

std::uint32_t RouteMtu::datagram_size_max(const base::SocketAddress& peer) {
  Answer& answer = slot(peer);
  if (answer.datagram_size == 0 || answer.peer != peer) answer = {peer, ask_kernel(local_, peer)};
  return answer.datagram_size;
}

void RouteMtu::forget(const base::SocketAddress& peer) {
  Answer& answer = slot(peer);
  if (answer.peer == peer) answer.datagram_size = 0;
}

}  // namespace fairlead::path
