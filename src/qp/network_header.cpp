#include "qp/network_header.hpp"

#include <cstring>

namespace fairlead::qp {
namespace {

constexpr std::uint8_t kUdp = 17, kHopLimit = 64;

void store_16(std::byte* to, std::uint32_t value) {
  to[0] = static_cast<std::byte>(value >> 8);
  to[1] = static_cast<std::byte>(value);
}

std::uint32_t checksum(const std::byte* ip) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2)
    sum += std::to_integer<std::uint32_t>(ip[i]) << 8 | std::to_integer<std::uint32_t>(ip[i + 1]);
  sum = (sum & 0xFFFF) + (sum >> 16);
  return ~((sum & 0xFFFF) + (sum >> 16));
}

void store_v4(std::byte* ip, const base::SocketAddress& from, const base::SocketAddress& to, std::uint64_t size,
              std::uint8_t traffic_class) {
  ip[0] = std::byte{0x45};
  ip[1] = std::byte{traffic_class};
  store_16(ip + 2, static_cast<std::uint32_t>(20 + size));
  ip[6] = std::byte{0x40};
  ip[8] = std::byte{kHopLimit};
  ip[9] = std::byte{kUdp};
  std::memcpy(ip + 12, from.ip.data() + 12, 4);
  std::memcpy(ip + 16, to.ip.data() + 12, 4);
  store_16(ip + 10, checksum(ip));
}

using Header = std::array<std::byte, kHeaderArea>;
using Ip = std::array<std::uint8_t, 16>;

Header v4_header(const base::SocketAddress& from, const base::SocketAddress& to, std::uint64_t size,
                 std::uint8_t traffic_class) {
  Header header{};
  store_v4(header.data() + 20, from, to, size, traffic_class);
  return header;
}

Header v6_header(const Ip& from, const Ip& to, std::uint64_t size, std::uint8_t traffic_class) {
  Header header{};
  header[0] = static_cast<std::byte>(0x60 | traffic_class >> 4);
  header[1] = static_cast<std::byte>(traffic_class << 4);
  store_16(header.data() + 4, static_cast<std::uint32_t>(size));
  header[6] = std::byte{kUdp};
  header[7] = std::byte{kHopLimit};
  std::memcpy(header.data() + 8, from.data(), 16);
  std::memcpy(header.data() + 24, to.data(), 16);
  return header;
}

}  // namespace

Header network_header(const base::SocketAddress& from, const base::SocketAddress& to, std::uint64_t size,
                      std::uint8_t traffic_class) {
  return from.is_v4() ? v4_header(from, to, size, traffic_class) : v6_header(from.ip, to.ip, size, traffic_class);
}

Header group_header(const base::SocketAddress& from, const Ip& group, std::uint64_t size, std::uint8_t traffic_class) {
  const base::SocketAddress to{.ip = group, .scope = 0, .port = 0};
  return from.is_v4() && to.is_v4() ? v4_header(from, to, size, traffic_class)
                                    : v6_header(from.ip, group, size, traffic_class);
}

std::uint8_t group_header_kind(const base::SocketAddress& from, const Ip& group) {
  const base::SocketAddress to{.ip = group, .scope = 0, .port = 0};
  return to.is_v4() ? header_kind(from) : 1;
}

}  // namespace fairlead::qp
