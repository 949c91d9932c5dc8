#pragma once
// The payload of bulkping: both ends compute it from (client, thread, loop, direction) alone, so each verifies what it
// receives. No two 64-bit words of a payload are equal, and payloads of different loops differ in every word. A lost,
// repeated, stale or misplaced piece is thus always detected.

#include <cstdint>
#include <optional>
#include <span>

namespace fairlead::tools {

enum class Direction : std::uint8_t { to_server = 1, to_client = 2 };

/// Identifies a payload.
struct PayloadName {
  std::uint64_t client = 0;  // random, one per client process
  std::uint32_t thread = 0;
  std::uint32_t loop = 0;
  Direction direction = Direction::to_server;
};

/// The first wrong byte.
struct Mismatch {
  std::uint64_t offset = 0;
  std::byte expected{}, found{};
};

void fill_pattern(std::span<std::byte> bytes, const PayloadName& name) noexcept;

std::optional<Mismatch> check_pattern(std::span<const std::byte> bytes, const PayloadName& name) noexcept;

}  // namespace fairlead::tools
