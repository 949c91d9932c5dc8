#include "tools/base/byte_size.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/quantity.hpp"

namespace fairlead::tools {
namespace {

constexpr std::size_t kSizesAtMost = 64;

}  // namespace

Result<std::uint64_t> parse_byte_size(std::string_view text, std::uint64_t largest) {
  const auto size = base::parse_quantity(text, "bytes");
  if (size && *size >= 1 && *size <= largest) return *size;
  return std::unexpected(Error{Status::invalid, 0,
                               fmt::format("size '{}': want 1 to {} bytes, as {}", text, byte_size_text(largest),
                                           base::quantity_wanted("bytes"))});
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
  for (const auto& [letter, shift] : {std::pair{'G', 30}, {'M', 20}, {'K', 10}}) {
    const std::uint64_t unit = std::uint64_t{1} << shift;
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{}{}", bytes >> shift, letter);
  }
  return fmt::format("{}", bytes);
}

}  // namespace fairlead::tools
