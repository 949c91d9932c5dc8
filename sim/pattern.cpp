#include "sim/pattern.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace fairlead::sim {
namespace {

// The first word is the operation's number.
std::uint64_t word_at(std::uint64_t operation, std::uint64_t index) {
  if (index == 0) return operation;
  std::uint64_t word = (operation * 0x9e3779b97f4a7c15) ^ (index * 0xbf58476d1ce4e5b9);
  word ^= word >> 29;
  return word * 0x94d049bb133111eb;
}

template <typename Visit>
void for_each_word(std::size_t size, std::uint64_t operation, std::uint64_t offset, Visit&& visit) {
  for (std::size_t at = 0; at < size; at += 8) {
    const std::uint64_t word = word_at(operation, (offset + at) / 8);
    if (!visit(at, word, std::min<std::size_t>(8, size - at))) return;
  }
}

}  // namespace

void fill_pattern(std::span<std::byte> bytes, std::uint64_t operation, std::uint64_t offset) {
  for_each_word(bytes.size(), operation, offset, [&](std::size_t at, std::uint64_t word, std::size_t length) {
    std::memcpy(bytes.data() + at, &word, length);
    return true;
  });
}

std::optional<std::size_t> find_wrong(std::span<const std::byte> bytes, std::uint64_t operation, std::uint64_t offset) {
  std::optional<std::size_t> wrong;
  for_each_word(bytes.size(), operation, offset, [&](std::size_t at, std::uint64_t word, std::size_t length) {
    if (std::memcmp(bytes.data() + at, &word, length) == 0) return true;
    std::array<std::byte, 8> right;
    std::memcpy(right.data(), &word, 8);
    std::size_t index = 0;
    while (bytes[at + index] == right[index]) ++index;
    wrong = at + index;
    return false;
  });
  return wrong;
}

std::uint64_t name_in(std::span<const std::byte> bytes) {
  std::uint64_t name = 0;
  std::memcpy(&name, bytes.data(), sizeof(name));
  return name;
}

std::byte tiny_byte(std::uint32_t from_host, std::uint64_t size) {
  return static_cast<std::byte>(from_host * 8 + size + 1);
}

}  // namespace fairlead::sim
