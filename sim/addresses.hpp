#pragma once
// Maps host numbers to addresses and back: host n has address 10.0.0.0 + n.

#include <cstdint>

#include "base/socket_address.hpp"

namespace fairlead::sim {

inline base::SocketAddress address_of(std::uint32_t host) {
  base::SocketAddress address;
  address.ip = {0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0xff,
                0xff,
                10,
                static_cast<std::uint8_t>(host >> 16),
                static_cast<std::uint8_t>(host >> 8),
                static_cast<std::uint8_t>(host)};
  address.port = 20480;
  return address;
}

inline std::uint32_t host_at(const base::SocketAddress& address) {
  return static_cast<std::uint32_t>(address.ip[13]) << 16 | static_cast<std::uint32_t>(address.ip[14]) << 8 |
         address.ip[15];
}

}  // namespace fairlead::sim
