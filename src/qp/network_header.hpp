#pragma once
// What a RoCE v2 device puts before a datagram's data: an IPv6 header, or an IPv4 header in the last 20 bytes.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/socket_address.hpp"

namespace fairlead::qp {

inline constexpr std::size_t kHeaderArea = 40;

std::array<std::byte, kHeaderArea> network_header(const base::SocketAddress& from, const base::SocketAddress& to,
                                                  std::uint64_t size, std::uint8_t traffic_class);

/// Which of them, as mlx5 tells it in the low bits of a completion's service level. UCX looks at the wrong place
/// without.
inline std::uint8_t header_kind(const base::SocketAddress& from) {
  return from.is_v4() ? 2 : 1;
}

/// Of a datagram to a group: IPv4 if both are.
std::array<std::byte, kHeaderArea> group_header(const base::SocketAddress& from,
                                                const std::array<std::uint8_t, 16>& group, std::uint64_t size,
                                                std::uint8_t traffic_class);
std::uint8_t group_header_kind(const base::SocketAddress& from, const std::array<std::uint8_t, 16>& group);

}  // namespace fairlead::qp
