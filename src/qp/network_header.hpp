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

}  // namespace fairlead::qp
