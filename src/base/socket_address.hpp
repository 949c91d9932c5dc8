#pragma once
// An IP address with a UDP port, IPv4 or IPv6, as a plain value: compared, hashed, parsed and printed without system
// calls. IPv4 is stored as IPv4-mapped IPv6, so that each address has one form.

#include <fairlead/error.hpp>

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

struct sockaddr;

namespace fairlead::base {

struct SocketAddress {
  std::array<std::uint8_t, 16> ip{};  // network order; ::ffff:a.b.c.d for IPv4
  std::uint32_t scope = 0;            // interface index of a link-local IPv6 address, otherwise 0
  std::uint16_t port = 0;             // host order

  auto operator<=>(const SocketAddress&) const = default;
  // Compares words: a call that compares 16 bytes would cost more.
  bool operator==(const SocketAddress& other) const noexcept {
    using Halves = std::array<std::uint64_t, 2>;
    const auto one = std::bit_cast<Halves>(ip), two = std::bit_cast<Halves>(other.ip);
    return ((one[0] ^ two[0]) | (one[1] ^ two[1]) | (scope ^ other.scope) | (port ^ other.port)) == 0;
  }

  bool is_v4() const noexcept;
  bool is_loopback() const noexcept;
  /// The part that its owner cannot choose freely, for limits per host: the IPv4 address, or the IPv6 network (first 64
  /// bits; for link-local addresses with the interface).
  std::uint64_t host() const noexcept;

  /// "10.0.0.5", "::1", "fe80::1%2"; no names, no port.
  static Result<SocketAddress> from_ip(std::string_view ip, std::uint16_t port);
  /// Converts a kernel address of family AF_INET or AF_INET6; anything else is invalid.
  static Result<SocketAddress> from_kernel(const sockaddr* address, unsigned length);
  /// Fills a kernel address of that family (at least sizeof(sockaddr_in6) bytes). Returns its length, or 0 if that
  /// family cannot express it (an IPv6 address in AF_INET).
  unsigned to_kernel(sockaddr* out, int family) const noexcept;

  std::string ip_text() const;
  std::string to_string() const;  // "10.0.0.5:20480", "[::1]:20480"
};

/// Peers choose their addresses, so the seed is secret: otherwise they could choose addresses that all collide. The
/// default seed is the process's own.
struct SocketAddressHash {
  static std::uint64_t seed_of_process() noexcept;

  std::uint64_t seed = seed_of_process();
  // The seed is in both factors, so no input can make one of them zero. For one seed in 200 the factor of the second
  // product is a poor one (few bits set at its ends), and the finalizer makes up for it.
  std::size_t operator()(const SocketAddress& address) const noexcept {
    const auto [high, low] = std::bit_cast<std::array<std::uint64_t, 2>>(address.ip);
    const std::uint64_t rest = std::uint64_t{address.scope} << 16 | address.port;
    const std::uint64_t first = fold(low ^ seed, high ^ std::rotl(seed, 32) ^ 0xd6e8'feb8'6659'fd93);
    return finalize(fold(first ^ rest, seed ^ 0xa076'1d64'78bd'642f));
  }

 private:
  // Multiplies two words and folds the product to one: every input bit affects every output bit.
  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  // Spreads the high bits over the low ones, which tables use. A bijection: it adds no collision.
  static std::uint64_t finalize(std::uint64_t word) noexcept {
    word ^= word >> 32;
    word *= 0xd6e8'feb8'6659'fd93;
    return word ^ word >> 32;
  }
};

}  // namespace fairlead::base
