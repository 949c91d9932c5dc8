#pragma once
// Bytes that tell which operation they belong to and where in it: whatever is lost, moved, mixed up or written twice
// shows. From kNamedSize bytes on, a message begins with the number of its operation.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace fairlead::sim {

inline constexpr std::size_t kNamedSize = 8;

/// Fills with the bytes [offset, offset + bytes.size()) of an operation's pattern; offset is a multiple of 8.
void fill_pattern(std::span<std::byte> bytes, std::uint64_t operation, std::uint64_t offset = 0);
/// Where the first wrong byte is; nothing if all are right.
std::optional<std::size_t> find_wrong(std::span<const std::byte> bytes, std::uint64_t operation,
                                      std::uint64_t offset = 0);

/// The number that a message of at least kNamedSize bytes begins with.
std::uint64_t name_in(std::span<const std::byte> bytes);

/// Too short to be named: all bytes are this.
std::byte tiny_byte(std::uint32_t from_host, std::uint64_t size);

}  // namespace fairlead::sim
