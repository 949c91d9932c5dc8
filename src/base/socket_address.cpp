#include "base/socket_address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstring>

#include "base/shown.hpp"

namespace fairlead::base {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::size_t kTextMax = INET6_ADDRSTRLEN - 1;

std::unexpected<Error> malformed(std::string_view text) {
  return std::unexpected(Error{Status::invalid, 0,
                               fmt::format("\"{}\" is not an IP address: write it as 10.0.0.5, ::1 or fe80::1%2 "
                                           "(numbers only; the zone is an interface index)",
                                           shown(text, kTextMax))});
}

}  // namespace

bool SocketAddress::is_v4() const noexcept {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), ip.begin());
}

bool SocketAddress::is_loopback() const noexcept {
  if (is_v4()) return ip[12] == 127;
  return ip[15] == 1 && std::all_of(ip.begin(), ip.end() - 1, [](std::uint8_t byte) { return byte == 0; });
}

std::uint64_t SocketAddress::host() const noexcept {
  const auto [network, rest] = std::bit_cast<std::array<std::uint64_t, 2>>(ip);
  return network == 0 ? rest : network ^ std::uint64_t{scope} << 32;
}

Result<SocketAddress> SocketAddress::from_ip(std::string_view text, std::uint16_t port) {
  SocketAddress address;
  address.port = port;
  const auto percent = text.find('%');
  const std::string_view digits = text.substr(0, percent);
  if (digits.empty() || digits.size() > kTextMax || digits.contains('\0')) return malformed(text);
  std::array<char, kTextMax + 1> terminated{};
  std::copy(digits.begin(), digits.end(), terminated.begin());

  if (percent == std::string_view::npos && inet_pton(AF_INET, terminated.data(), address.ip.data() + 12) == 1) {
    std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), address.ip.begin());
    return address;
  }
  if (inet_pton(AF_INET6, terminated.data(), address.ip.data()) != 1) return malformed(text);
  if (percent == std::string_view::npos) return address;

  const std::string_view zone = text.substr(percent + 1);
  const auto [end, fault] = std::from_chars(zone.data(), zone.data() + zone.size(), address.scope);
  const bool is_whole = fault == std::errc{} && end == zone.data() + zone.size();
  if (!is_whole || address.scope == 0 || address.is_v4()) return malformed(text);
  return address;
}

Result<SocketAddress> SocketAddress::from_kernel(const sockaddr* kernel, unsigned length) {
  SocketAddress address;
  sa_family_t family = AF_UNSPEC;
  if (kernel != nullptr && length >= sizeof(family)) std::memcpy(&family, kernel, sizeof(family));
  if (family == AF_INET && length >= sizeof(sockaddr_in)) {
    sockaddr_in v4{};
    std::memcpy(&v4, kernel, sizeof(v4));
    std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), address.ip.begin());
    std::memcpy(address.ip.data() + 12, &v4.sin_addr, 4);
    address.port = ntohs(v4.sin_port);
    return address;
  }
  if (family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, kernel, sizeof(v6));
    std::memcpy(address.ip.data(), &v6.sin6_addr, 16);
    address.port = ntohs(v6.sin6_port);
    address.scope = v6.sin6_scope_id;
    return address;
  }
  return std::unexpected(
      Error{Status::invalid, 0,
            fmt::format("kernel address of family {} and {} bytes is neither IPv4 nor IPv6: open the "
                        "socket with AF_INET or AF_INET6",
                        family, length)});
}

unsigned SocketAddress::to_kernel(sockaddr* out, int family) const noexcept {
  if (family == AF_INET && is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, ip.data() + 12, 4);
    std::memcpy(out, &v4, sizeof(v4));
    return sizeof(v4);
  }
  if (family == AF_INET6) {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_scope_id = scope;
    std::memcpy(&v6.sin6_addr, ip.data(), 16);
    std::memcpy(out, &v6, sizeof(v6));
    return sizeof(v6);
  }
  return 0;
}

std::string SocketAddress::ip_text() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_v4()) {
    inet_ntop(AF_INET, ip.data() + 12, text.data(), text.size());
    return text.data();
  }
  inet_ntop(AF_INET6, ip.data(), text.data(), text.size());
  return scope == 0 ? std::string(text.data()) : fmt::format("{}%{}", text.data(), scope);
}

std::string SocketAddress::to_string() const {
  return fmt::format(fmt::runtime(is_v4() ? "{}:{}" : "[{}]:{}"), ip_text(), port);
}

std::uint64_t SocketAddressHash::seed_of_process() noexcept {
  static const std::uint64_t seed = [] {
    std::uint64_t random = 0;
    if (::getentropy(&random, sizeof random) != 0)
      random = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    return random;
  }();
  return seed;
}

}  // namespace fairlead::base
