#include "doors/rdma_cm/addressing.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

namespace fairlead::rdma_cm {
namespace {

constexpr int kPortsTried = 16;
constexpr std::uint16_t kAnyPort = 9;  // unused: connecting a datagram socket sends nothing

using AddressBytes = std::array<std::byte, kNameSizeMax>;

struct Address {
  AddressBytes bytes{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(bytes.data()); }
};

Address address_of(const Ip& ip, std::uint16_t port) {
  Address address;
  const SocketName name{.family = is_v4(ip) ? Family::v4 : Family::v6, .ip = ip, .port = port};
  address.size = static_cast<socklen_t>(write_name(name, 0, address.bytes));
  return address;
}

base::FileDescriptor datagram_socket(const Ip& ip) {
  return base::FileDescriptor(::socket(is_v4(ip) ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

SocketName name_of(int socket) {
  AddressBytes bytes{};
  socklen_t size = bytes.size();
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(bytes.data()), &size) != 0) return {};
  return read_name(bytes).value_or(SocketName{});
}

}  // namespace

const ibverbs::Identity* find_identity(const Ip& ip) {
  for (const ibverbs::Identity& each : ibverbs::identities()) {
    if (each.device.gid == ip) return &each;
  }
  return nullptr;
}

std::uint32_t index_of(const ibverbs::Identity& identity) {
  return static_cast<std::uint32_t>(&identity - ibverbs::identities().data());
}

std::vector<Ip> devices_of(const SocketName& name, bool takes_v6_only) {
  const bool is_open = is_any(name.ip), is_v6 = name.family == Family::v6;
  const auto fits_family = [&](const Ip& ip) {
    return name.family == Family::v4 ? is_v4(ip) : !(takes_v6_only && is_v6 && is_v4(ip));
  };
  if (is_loopback(name.ip)) {
    const auto device = device_towards(name.ip);
    const bool is_usable = device && (name.family == Family::v4 || fits_family(*device));
    return is_usable ? std::vector{*device} : std::vector<Ip>{};
  }
  std::vector<Ip> found;
  for (const ibverbs::Identity& each : ibverbs::identities()) {
    const Ip& ip = each.device.gid;
    if (std::ranges::find(found, ip) != found.end()) continue;
    if (ip == name.ip || (is_open && fits_family(ip))) found.push_back(ip);
  }
  return found;
}

std::expected<Ip, int> device_towards(const Ip& target) {
  const auto& all = ibverbs::identities();
  if (all.empty()) return std::unexpected(ENODEV);
  if (is_any(target) || is_loopback(target)) {
    const auto alike =
        std::ranges::find_if(all, [&](const auto& each) { return is_v4(each.device.gid) == is_v4(target); });
    return (alike != all.end() ? *alike : all.front()).device.gid;
  }
  const base::FileDescriptor socket = datagram_socket(target);
  const Address address = address_of(target, kAnyPort);
  if (!socket.is_open() || ::connect(socket.get(), address.get(), address.size) != 0) return std::unexpected(errno);
  const Ip from = name_of(socket.get()).ip;
  if (find_identity(from) != nullptr) return from;
  for (const ibverbs::Identity& each : all) {
    if (is_v4(each.device.gid) == is_v4(target)) return each.device.gid;
  }
  return std::unexpected(ENODEV);
}

// Sends an empty datagram. Within the host, the kernel refuses it at once if nobody has the port. An engine drops it.
bool is_nobody_at(const Ip& ip, std::uint16_t port) {
  if (find_identity(ip) == nullptr) return false;
  const base::FileDescriptor socket = datagram_socket(ip);
  const Address address = address_of(ip, port);
  if (!socket.is_open() || ::connect(socket.get(), address.get(), address.size) != 0) return false;
  if (::send(socket.get(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return errno == ECONNREFUSED;
  char byte;
  return ::recv(socket.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == ECONNREFUSED;
}

std::expected<std::vector<base::FileDescriptor>, int> reserve(std::span<const Ip> ips, std::uint16_t& port) {
  int error = EADDRINUSE;
  for (int i = 0; i < (port == 0 ? kPortsTried : 1); ++i) {
    std::vector<base::FileDescriptor> sockets;
    std::uint16_t wanted = port;
    for (const Ip& ip : ips) {
      base::FileDescriptor socket = datagram_socket(ip);
      const Address address = address_of(ip, wanted);
      if (!socket.is_open() || ::bind(socket.get(), address.get(), address.size) != 0) {
        error = errno;
        break;
      }
      if (wanted == 0) wanted = name_of(socket.get()).port;
      // Connect the socket to itself: it then takes nothing from strangers, and lists of listening sockets omit it.
      const Address own = address_of(ip, wanted);
      [[maybe_unused]] const int connected = ::connect(socket.get(), own.get(), own.size);
      sockets.push_back(std::move(socket));
    }
    if (sockets.size() < ips.size()) continue;
    port = wanted;
    return sockets;
  }
  return std::unexpected(error);
}

}  // namespace fairlead::rdma_cm
