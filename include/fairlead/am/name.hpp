#pragma once
// The global name of an endpoint, and the tag by which its owner decides who may send to it.

#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace fairlead::am {

/// The global name of an endpoint. A plain value: programs may copy it and send it.
struct Name {
  std::array<std::uint8_t, 16> ip{};  ///< network order; ::ffff:a.b.c.d for IPv4
  std::uint16_t udp_port = 0;         ///< of the engine
  std::uint32_t endpoint = 0;         ///< of the endpoint on that engine
  auto operator<=>(const Name&) const = default;
  std::string to_string() const;
};

/// Who may send to an endpoint: nobody, everybody, or senders with the same key.
struct Tag {
  enum class Rule : std::uint8_t { none, all, key } rule = Rule::none;
  std::uint64_t key = 0;
  static constexpr Tag none() { return {}; }
  static constexpr Tag all() { return {Rule::all, 0}; }
  static constexpr Tag of(std::uint64_t key) { return {Rule::key, key}; }
  bool operator==(const Tag&) const = default;
};

}  // namespace fairlead::am
