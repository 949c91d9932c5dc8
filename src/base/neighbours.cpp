#include "base/neighbours.hpp"

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/file_descriptor.hpp"

namespace fairlead::base {
namespace {

using AnswerBytes = std::array<std::byte, 4096>;

/// A request with one attribute, an address. `Body`: rtmsg or ndmsg.
template <typename Body>
struct Request {
  nlmsghdr header;
  Body body;
  rtattr attribute;
  std::array<std::uint8_t, 16> address;
};

/// Returns the address as the kernel wants it: 4 or 16 bytes.
std::span<const std::uint8_t> bytes_of(const SocketAddress& address) {
  const std::span<const std::uint8_t> all(address.ip);
  return address.is_v4() ? all.last(4) : all;
}

/// Asks the kernel, which answers before send() returns. Returns the message, if it is of the wanted type. Its body has
/// the form of the question's.
template <typename Body>
const nlmsghdr* ask_netlink(int socket, std::uint16_t question, const Body& body, const SocketAddress& address,
                            AnswerBytes& bytes, std::uint16_t wanted) {
  const auto ip = bytes_of(address);
  Request<Body> request{};
  request.body = body;
  request.attribute = {.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(ip.size())), .rta_type = RTA_DST};
  static_assert(std::uint32_t{RTA_DST} == std::uint32_t{NDA_DST});
  static_assert(offsetof(Request<Body>, attribute) % RTA_ALIGNTO == 0);
  std::memcpy(request.address.data(), ip.data(), ip.size());
  const std::size_t length = offsetof(Request<Body>, address) + ip.size();
  request.header.nlmsg_len = static_cast<std::uint32_t>(length);
  request.header.nlmsg_type = question;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  if (::send(socket, &request, length, MSG_NOSIGNAL) < 0) return nullptr;
  const auto received = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  const auto* const message = reinterpret_cast<const nlmsghdr*>(bytes.data());
  const bool is_whole = received > 0 && NLMSG_OK(message, static_cast<std::uint32_t>(received));
  const bool is_answer = is_whole && message->nlmsg_type == wanted && message->nlmsg_len >= NLMSG_LENGTH(sizeof(Body));
  return is_answer ? message : nullptr;
}

/// Returns the interface of a directly connected network; nothing if a router is in between.
std::optional<int> interface_towards(int socket, const SocketAddress& address) {
  rtmsg body{};
  body.rtm_family = address.is_v4() ? AF_INET : AF_INET6;
  body.rtm_dst_len = static_cast<std::uint8_t>(8 * bytes_of(address).size());
  alignas(nlmsghdr) AnswerBytes bytes;
  const nlmsghdr* const answer = ask_netlink(socket, RTM_GETROUTE, body, address, bytes, RTM_NEWROUTE);
  if (answer == nullptr) return std::nullopt;
  const auto* const route = static_cast<const rtmsg*>(NLMSG_DATA(answer));
  std::optional<int> interface;
  auto left = static_cast<int>(RTM_PAYLOAD(answer));
  for (const rtattr* one = RTM_RTA(route); RTA_OK(one, left); one = RTA_NEXT(one, left)) {
    if (one->rta_type == RTA_GATEWAY || one->rta_type == RTA_VIA) return std::nullopt;
    if (one->rta_type != RTA_OIF) continue;
    int index = 0;
    std::memcpy(&index, RTA_DATA(one), sizeof index);
    interface = index;
  }
  return interface;
}

}  // namespace

bool is_neighbour_missing(const SocketAddress& address) {
  if (address.is_loopback()) return false;
  const FileDescriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.is_open()) return false;
  const auto interface =
      address.scope != 0 ? std::optional(static_cast<int>(address.scope)) : interface_towards(socket.get(), address);
  if (!interface) return false;
  ndmsg body{};
  body.ndm_family = address.is_v4() ? AF_INET : AF_INET6;
  body.ndm_ifindex = *interface;
  alignas(nlmsghdr) AnswerBytes bytes;
  const nlmsghdr* const answer = ask_netlink(socket.get(), RTM_GETNEIGH, body, address, bytes, RTM_NEWNEIGH);
  if (answer == nullptr) return false;
  const auto* const neighbour = static_cast<const ndmsg*>(NLMSG_DATA(answer));
  return (neighbour->ndm_state & (NUD_INCOMPLETE | NUD_FAILED)) != 0;
}

}  // namespace fairlead::base
