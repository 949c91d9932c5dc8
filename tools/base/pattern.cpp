#include "tools/base/pattern.hpp"

#include <bit>
#include <cstring>
#include <utility>

namespace fairlead::tools {
namespace {

static_assert(std::endian::native == std::endian::little, "the last, partial word is the low bytes of its word");

constexpr std::uint64_t kStep = 0x9e37'79b9'7f4a'7c15;  // odd, so that all words of a payload differ
constexpr std::size_t kWordsPerBlock = 512;             // checked as a block first, word by word only if one is wrong

std::uint64_t mix(std::uint64_t word) noexcept {
  word = (word ^ (word >> 31)) * 0xd6e8'feb8'6659'fd93;
  return word ^ (word >> 32);
}

std::uint64_t first_word(const PayloadName& name) noexcept {
  const std::uint64_t place = std::uint64_t{name.thread} << 32 | name.loop;
  return mix(mix(name.client + std::to_underlying(name.direction) * kStep) + place);
}

bool block_is_right(const std::byte* bytes, std::uint64_t word) noexcept {
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < kWordsPerBlock; ++i) {
    std::uint64_t found;
    std::memcpy(&found, bytes + i * sizeof found, sizeof found);
    difference |= found ^ (word + i * kStep);
  }
  return difference == 0;
}

}  // namespace

void fill_pattern(std::span<std::byte> bytes, const PayloadName& name) noexcept {
  const std::uint64_t first = first_word(name);
  const std::size_t words = bytes.size() / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t word = first + i * kStep;
    std::memcpy(bytes.data() + i * sizeof word, &word, sizeof word);
  }
  const std::uint64_t last = first + words * kStep;
  std::memcpy(bytes.data() + words * sizeof last, &last, bytes.size() % sizeof last);
}

std::optional<Mismatch> check_pattern(std::span<const std::byte> bytes, const PayloadName& name) noexcept {
  const std::uint64_t first = first_word(name);
  constexpr std::size_t kBlock = kWordsPerBlock * sizeof(std::uint64_t);
  std::size_t offset = 0;
  while (bytes.size() - offset >= kBlock &&
         block_is_right(bytes.data() + offset, first + offset / sizeof first * kStep)) {
    offset += kBlock;
  }
  for (; offset < bytes.size(); ++offset) {
    const std::uint64_t word = first + offset / sizeof first * kStep;
    const auto expected = static_cast<std::byte>(word >> offset % sizeof word * 8);
    if (bytes[offset] != expected) return Mismatch{offset, expected, bytes[offset]};
  }
  return std::nullopt;
}

}  // namespace fairlead::tools
