#pragma once
// What a checked measurement writes into what it sends: a number in every 512 bytes, so that each packet carries one.
// Numbers grow, so a piece that is missing, stale, repeated or misplaced shows.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace fairlead::tools {

/// A size below 8 bytes carries nothing.
void write_stamps(std::span<std::byte> bytes, std::uint64_t number);

/// The number that stands at all places, or nothing if they differ. 0 if the size carries none.
std::optional<std::uint64_t> read_stamps(std::span<const std::byte> bytes);

}  // namespace fairlead::tools
