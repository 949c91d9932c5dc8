#include "base/address_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/shown.hpp"

namespace fairlead::base {
namespace {

constexpr std::uint32_t kAddressBits = 128, kMappedBits = 96;

std::unexpected<Error> no_range(std::string_view text, std::string_view why) {
  return std::unexpected(
      Error{Status::invalid, 0,
            fmt::format("\"{}\" is no range of addresses, {}: write it as 10.0.0.0/8, fd00::/8 or 10.0.0.5",
                        shown(text), why)});
}

std::uint8_t mask_of(std::uint32_t bits) {
  return static_cast<std::uint8_t>(bits >= 8 ? 0xff : 0xff00U >> bits);
}

}  // namespace

Result<AddressRange> AddressRange::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto address = SocketAddress::from_ip(text.substr(0, slash), 0);
  if (!address || address->scope != 0) return no_range(text, "its address cannot be read");
  AddressRange range;
  const std::uint32_t most = address->is_v4() ? kAddressBits - kMappedBits : kAddressBits;
  std::uint32_t bits = most;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (fault != std::errc{} || end != digits.data() + digits.size() || bits > most)
      return no_range(text, fmt::format("its length is none from 0 to {}", most));
  }
  range.bits_ = bits + kAddressBits - most;
  range.first_ = address->ip;
  for (std::uint32_t i = 0; i < range.first_.size(); ++i) {
    const std::uint8_t mask = range.bits_ > 8 * i ? mask_of(range.bits_ - 8 * i) : std::uint8_t{0};
    if ((range.first_[i] & ~mask) != 0) return no_range(text, "its address has bits behind the length");
  }
  return range;
}

bool AddressRange::contains(const SocketAddress& address) const noexcept {
  for (std::uint32_t i = 0; i < first_.size() && 8 * i < bits_; ++i) {
    if (((first_[i] ^ address.ip[i]) & mask_of(bits_ - 8 * i)) != 0) return false;
  }
  return true;
}

Result<std::vector<AddressRange>> parse_ranges(std::string_view text) {
  std::vector<AddressRange> ranges;
  while (true) {
    const auto comma = text.find(',');
    auto range = AddressRange::parse(text.substr(0, comma));
    if (!range) return std::unexpected(std::move(range.error()));
    ranges.push_back(*range);
    if (comma == std::string_view::npos) return ranges;
    text.remove_prefix(comma + 1);
  }
}

bool contains(const std::vector<AddressRange>& ranges, const SocketAddress& address) noexcept {
  return std::ranges::any_of(ranges, [&](const AddressRange& range) { return range.contains(address); });
}

}  // namespace fairlead::base
