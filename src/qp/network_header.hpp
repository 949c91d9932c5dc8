#pragma once
// The header that a RoCE v2 device places before the payload of a datagram: an IPv6 header, or an IPv4 header in the
// last 20 bytes.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/socket_address.hpp"

namespace fairlead::qp {

inline constexpr std::size_t kHeaderArea = 40;

std::array<std::byte, kHeaderArea> network_header(const base::SocketAddress& from, const base::SocketAddress& to,
                                                  std::uint64_t size, std::uint8_t traffic_class);

/// Returns the kind of header, 1 for IPv6 and 2 for IPv4: mlx5 reports it in the low bits of a completion's service
/// level. Without it UCX reads the wrong bytes.
inline std::uint8_t header_kind(const base::SocketAddress& from) {
  return from.is_v4() ? 2 : 1;
}

/// The header of a datagram to a group: IPv4 if sender and group are IPv4.
std::array<std::byte, kHeaderArea> group_header(const base::SocketAddress& from,
                                                const std::array<std::uint8_t, 16>& group, std::uint64_t size,
                                                std::uint8_t traffic_class);
std::uint8_t group_header_kind(const base::SocketAddress& from, const std::array<std::uint8_t, 16>& group);

}  // namespace fairlead::qp
