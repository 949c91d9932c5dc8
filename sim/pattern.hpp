#pragma once
// Byte patterns that identify an operation and the offset within it. Lost, moved, mixed-up and repeated bytes are thus
// detected. A message of at least kNamedSize bytes begins with the number of its operation.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace fairlead::sim {

inline constexpr std::size_t kNamedSize = 8;

/// Fills `bytes` with an operation's pattern from `offset` on, which must be a multiple of 8.
void fill_pattern(std::span<std::byte> bytes, std::uint64_t operation, std::uint64_t offset = 0);
/// Returns the position of the first wrong byte, or nullopt if all are right.
std::optional<std::size_t> find_wrong(std::span<const std::byte> bytes, std::uint64_t operation,
                                      std::uint64_t offset = 0);

/// Returns the number at the start of a message of at least kNamedSize bytes.
std::uint64_t name_in(std::span<const std::byte> bytes);

/// Returns the value of all bytes of a message that is too short for a number.
std::byte tiny_byte(std::uint32_t from_host, std::uint64_t size);

}  // namespace fairlead::sim
