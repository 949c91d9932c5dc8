#include "tools/byte_size.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace fairlead::tools {
namespace {

struct Suffix {
  char letter;
  int shift;
};
constexpr std::array<Suffix, 3> kSuffixes{{{'G', 30}, {'M', 20}, {'K', 10}}};
constexpr std::size_t kSizesAtMost = 64;

}  // namespace

Result<std::uint64_t> parse_byte_size(std::string_view text, std::uint64_t largest) {
  auto refuse = [&] {
    return std::unexpected(
        Error{Status::invalid, 0,
              fmt::format("size '{}': want 1 to {} bytes, as a whole number with K, M or G behind it if you like", text,
                          byte_size_text(largest))});
  };
  std::string_view digits = text;
  int shift = 0;
  for (const Suffix& suffix : kSuffixes) {
    if (!text.empty() && (text.back() & ~0x20) == suffix.letter) {
      shift = suffix.shift;
      digits.remove_suffix(1);
    }
  }
  std::uint64_t count = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (code != std::errc() || end != digits.data() + digits.size()) return refuse();
  if (count == 0 || count > largest >> shift) return refuse();
  return count << shift;
}

Result<std::vector<std::uint64_t>> parse_byte_sizes(std::string_view text, std::uint64_t largest) {
  std::vector<std::uint64_t> sizes;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    auto size = parse_byte_size(text.substr(start, comma - start), largest);
    if (!size) return std::unexpected(std::move(size.error()));
    if (sizes.size() == kSizesAtMost) {
      return std::unexpected(
          Error{Status::invalid, 0, fmt::format("more than {} sizes: run them in parts", kSizesAtMost)});
    }
    sizes.push_back(*size);
    start = comma + 1;
  }
  return sizes;
}

std::string byte_size_text(std::uint64_t bytes) {
  for (const auto [letter, shift] : kSuffixes) {
    const std::uint64_t unit = std::uint64_t{1} << shift;
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{}{}", bytes >> shift, letter);
  }
  return fmt::format("{}", bytes);
}

}  // namespace fairlead::tools
