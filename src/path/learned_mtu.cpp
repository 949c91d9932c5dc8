#include "path/learned_mtu.hpp"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "base/file_descriptor.hpp"

namespace fairlead::path {
namespace {

/// Returns the bytes of an IP address in its own family's form.
std::span<const std::uint8_t> bytes_of(const base::SocketAddress& address) {
  const std::span<const std::uint8_t> all(reinterpret_cast<const std::uint8_t*>(address.ip.data()), 16);
  return address.is_v4() ? all.subspan(12) : all;
}

/// A netlink request for the route to an address.
class RouteRequest {
 public:
  explicit RouteRequest(const base::SocketAddress& peer) {
    head_.nlmsg_type = RTM_GETROUTE;
    head_.nlmsg_flags = NLM_F_REQUEST;
    route_.rtm_family = peer.is_v4() ? AF_INET : AF_INET6;
    route_.rtm_dst_len = static_cast<unsigned char>(8 * bytes_of(peer).size());
    add(RTA_DST, bytes_of(peer).data(), bytes_of(peer).size());
    if (peer.scope != 0) add(RTA_OIF, &peer.scope, sizeof peer.scope);
  }
  void from(const base::SocketAddress& local) {
    route_.rtm_src_len = static_cast<unsigned char>(8 * bytes_of(local).size());
    add(RTA_SRC, bytes_of(local).data(), bytes_of(local).size());
  }
  bool send(int socket) {
    head_.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof route_) + size_);
    std::array<std::byte, NLMSG_LENGTH(sizeof(rtmsg)) + kAttributesMost> bytes{};
    std::memcpy(bytes.data(), &head_, sizeof head_);
    std::memcpy(bytes.data() + NLMSG_HDRLEN, &route_, sizeof route_);
    std::memcpy(bytes.data() + NLMSG_LENGTH(sizeof route_), attributes_.data(), size_);
    return ::send(socket, bytes.data(), head_.nlmsg_len, MSG_NOSIGNAL) == static_cast<ssize_t>(head_.nlmsg_len);
  }

 private:
  static constexpr std::size_t kAttributesMost = 64;

  void add(unsigned short type, const void* value, std::size_t length) {
    const rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(length)), type};
    std::memcpy(attributes_.data() + size_, &attribute, sizeof attribute);
    std::memcpy(attributes_.data() + size_ + RTA_LENGTH(0), value, length);
    size_ += RTA_SPACE(length);
  }

  nlmsghdr head_{};
  rtmsg route_{};
  std::array<std::byte, kAttributesMost> attributes_{};
  std::size_t size_ = 0;
};

struct Route {
  int interface = 0;
  bool is_learned = false;
};

/// A learned MTU expires; one that the administrator has set does not.
bool expires(const rtattr* attribute) {
  rta_cacheinfo cached{};
  if (RTA_PAYLOAD(attribute) < sizeof cached) return false;
  std::memcpy(&cached, RTA_DATA(attribute), sizeof cached);
  return cached.rta_expires != 0;
}

std::optional<Route> read_answer(int socket) {
  alignas(nlmsghdr) std::array<std::byte, 4096> bytes;
  const ssize_t size = ::recv(socket, bytes.data(), bytes.size(), 0);
  const auto* head = reinterpret_cast<const nlmsghdr*>(bytes.data());
  if (size < 0 || !NLMSG_OK(head, static_cast<std::size_t>(size)) || head->nlmsg_type != RTM_NEWROUTE)
    return std::nullopt;
  Route route;
  auto left = static_cast<std::size_t>(RTM_PAYLOAD(head));
  for (const rtattr* each = RTM_RTA(NLMSG_DATA(head)); RTA_OK(each, left); each = RTA_NEXT(each, left)) {
    if (each->rta_type == RTA_OIF) std::memcpy(&route.interface, RTA_DATA(each), sizeof route.interface);
    if (each->rta_type == RTA_CACHEINFO) route.is_learned = expires(each);
  }
  return route;
}

std::optional<std::uint32_t> mtu_of_interface(int index) {
  const base::FileDescriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  if (::if_indextoname(static_cast<unsigned>(index), request.ifr_name) == nullptr) return std::nullopt;
  if (::ioctl(any.get(), SIOCGIFMTU, &request) != 0) return std::nullopt;
  return static_cast<std::uint32_t>(request.ifr_mtu);
}

}  // namespace

std::optional<std::uint32_t> interface_mtu_if_learned(const base::SocketAddress& local,
                                                      const base::SocketAddress& peer) {
  const base::FileDescriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.is_open()) return std::nullopt;
  RouteRequest request(peer);
  const bool is_bound =
      local.ip != base::SocketAddress{}.ip && local.is_v4() == peer.is_v4() && bytes_of(local)[0] != 0;
  if (is_bound) request.from(local);
  if (!request.send(socket.get())) return std::nullopt;
  const auto route = read_answer(socket.get());
  return route && route->is_learned ? mtu_of_interface(route->interface) : std::nullopt;
}

}  // namespace fairlead::path
