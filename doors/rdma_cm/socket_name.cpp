#include "doors/rdma_cm/socket_name.hpp"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace fairlead::rdma_cm {
namespace {

constexpr unsigned kFamilyGid = 27;  // AF_IB

/// The kernel's sockaddr_ib.
struct GidAddress {
  std::uint16_t family;
  std::uint16_t pkey;
  std::uint32_t flow;
  Ip gid;
  std::uint64_t service;  // big endian: port space << 16 | port
  std::uint64_t service_mask;
  std::uint64_t scope;
};
static_assert(sizeof(GidAddress) == 48);

constexpr Ip kV4Prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::size_t kV4Offset = 12;

template <typename Address>
Address take(std::span<const std::byte> bytes) {
  Address address{};
  std::memcpy(&address, bytes.data(), sizeof address);
  return address;
}

template <typename Address>
std::size_t put(const Address& address, std::span<std::byte> out) {
  std::memcpy(out.data(), &address, sizeof address);
  return sizeof address;
}

}  // namespace

bool is_v4(const Ip& ip) {
  return std::equal(ip.begin(), ip.begin() + kV4Offset, kV4Prefix.begin());
}

bool is_any(const Ip& ip) {
  return ip == Ip{} || ip == kV4Prefix;
}

bool is_group(const Ip& ip) {
  return ip[0] == 0xFF || (is_v4(ip) && (ip[12] & 0xF0) == 0xE0);
}

bool is_loopback(const Ip& ip) {
  if (is_v4(ip)) return ip[kV4Offset] == 127;
  Ip one{};
  one[15] = 1;
  return ip == one;
}

std::string to_text(const Ip& ip) {
  char text[INET6_ADDRSTRLEN] = {};
  if (is_v4(ip)) {
    ::inet_ntop(AF_INET, ip.data() + kV4Offset, text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, ip.data(), text, sizeof text);
  }
  return text;
}

std::optional<Ip> ip_of(std::string_view text) {
  Ip ip = kV4Prefix;
  const std::string copy(text);
  if (::inet_pton(AF_INET, copy.c_str(), ip.data() + kV4Offset) == 1) return ip;
  if (::inet_pton(AF_INET6, copy.c_str(), ip.data()) == 1) return ip;
  return std::nullopt;
}

std::size_t size_of_family(unsigned address_family) {
  switch (address_family) {
    case AF_INET:
      return sizeof(sockaddr_in);
    case AF_INET6:
      return sizeof(sockaddr_in6);
    case kFamilyGid:
      return sizeof(GidAddress);
    default:
      return 0;
  }
}

std::optional<SocketName> read_name(std::span<const std::byte> bytes) {
  std::uint16_t family = 0;
  if (bytes.size() < sizeof family) return std::nullopt;
  std::memcpy(&family, bytes.data(), sizeof family);
  const std::size_t size = size_of_family(family);
  if (size == 0 || bytes.size() < size) return std::nullopt;
  SocketName name;
  if (family == AF_INET) {
    const auto address = take<sockaddr_in>(bytes);
    name = {.family = Family::v4, .ip = kV4Prefix, .port = ntohs(address.sin_port)};
    std::memcpy(name.ip.data() + kV4Offset, &address.sin_addr, sizeof address.sin_addr);
  } else if (family == AF_INET6) {
    const auto address = take<sockaddr_in6>(bytes);
    name = {.family = Family::v6, .ip = {}, .port = ntohs(address.sin6_port)};
    std::memcpy(name.ip.data(), &address.sin6_addr, sizeof address.sin6_addr);
  } else {
    const auto address = take<GidAddress>(bytes);
    name = {.family = Family::gid, .ip = address.gid, .port = static_cast<std::uint16_t>(be64toh(address.service))};
  }
  return name;
}

std::size_t write_name(const SocketName& name, std::uint16_t port_space, std::span<std::byte> out) {
  switch (name.family) {
    case Family::v4: {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(name.port);
      std::memcpy(&address.sin_addr, name.ip.data() + kV4Offset, sizeof address.sin_addr);
      return put(address, out);
    }
    case Family::v6: {
      sockaddr_in6 address{};
      address.sin6_family = AF_INET6;
      address.sin6_port = htons(name.port);
      std::memcpy(&address.sin6_addr, name.ip.data(), sizeof address.sin6_addr);
      return put(address, out);
    }
    case Family::gid:
      return write_gid_name(name, port_space, out);
    case Family::none:
      return 0;
  }
  return 0;
}

std::size_t write_gid_name(const SocketName& name, std::uint16_t port_space, std::span<std::byte> out) {
  return put(GidAddress{.family = kFamilyGid,
                        .pkey = htons(0xffff),
                        .flow = 0,
                        .gid = name.ip,
                        .service = htobe64(std::uint64_t{port_space} << 16 | name.port),
                        .service_mask = ~std::uint64_t{0},
                        .scope = 0},
             out);
}

}  // namespace fairlead::rdma_cm
