#pragma once
// Addresses for tests that run in parallel: each process has its own loopback address.

#include <fmt/format.h>
#include <unistd.h>

#include "base/socket_address.hpp"

namespace fairlead::base {

/// Returns an address of this process alone, by number.
inline SocketAddress place_for_tests(std::uint16_t number) {
  const auto process = static_cast<std::uint32_t>(::getpid());  // at most 22 bits
  const std::string ip = fmt::format("127.{}.{}.{}", 64 + (process >> 16U) % 64, (process >> 8U) % 256, process % 256);
  return *SocketAddress::from_ip(ip, static_cast<std::uint16_t>(40000 + number));
}

}  // namespace fairlead::base
