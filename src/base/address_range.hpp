#pragma once
// A range of IP addresses: 10.0.0.0/8, fd00::/8, or one address. Ports are ignored.

#include <cstdint>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

#include "base/socket_address.hpp"

namespace fairlead::base {

class AddressRange {
 public:
  static Result<AddressRange> parse(std::string_view text);
  static AddressRange all() { return {}; }

  bool contains(const SocketAddress& address) const noexcept;
  bool operator==(const AddressRange&) const = default;

 private:
  std::array<std::uint8_t, 16> first_{};  // as in SocketAddress; bits beyond the prefix are zero
  std::uint32_t bits_ = 0;
};

/// Parses ranges separated by commas.
Result<std::vector<AddressRange>> parse_ranges(std::string_view text);

bool contains(const std::vector<AddressRange>& ranges, const SocketAddress& address) noexcept;

}  // namespace fairlead::base
