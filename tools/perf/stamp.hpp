#pragma once
// The stamps of a checked measurement: a number in every 512 bytes, so that each packet carries one. Numbers grow, so a
// missing, stale, repeated or misplaced piece is detected.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace fairlead::tools {

/// A size below 8 bytes carries no stamp.
void write_stamps(std::span<std::byte> bytes, std::uint64_t number);

/// Returns the number at all places, or nullopt if they differ. Returns 0 if the size carries none.
std::optional<std::uint64_t> read_stamps(std::span<const std::byte> bytes);

}  // namespace fairlead::tools
