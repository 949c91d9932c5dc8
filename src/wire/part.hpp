#pragma once
// A part of a segment that already had its sequence when its path's MTU became too small for it. The parts carry the
// segment's sequence, and the receiver reassembles its payload (docs/link.md). All parts but the last have one length.

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/layout.hpp"

namespace fairlead::wire {

inline constexpr std::uint32_t kPartsMost = 64;

struct Part {
  std::uint16_t index = 0;
  std::uint16_t count = 0;
  std::uint32_t payload_bytes = 0;   // of the whole segment's payload
  std::span<const std::byte> bytes;  // this part of it, from offset() on

  /// Length of all parts but the last.
  std::uint32_t part_bytes() const {
    const auto length = static_cast<std::uint32_t>(bytes.size());
    return index + 1 == count ? (payload_bytes - length) / (count - 1U) : length;
  }
  std::uint32_t offset() const { return index * part_bytes(); }
};

/// Writes the head of a part; the part's bytes follow it.
void encode_part(std::uint16_t index, std::uint16_t count, std::uint32_t payload_bytes, std::byte* to);

/// Reads a payload of more than kPartBytes; the values may be impossible.
Part read_part(std::span<const std::byte> payload);

bool is_possible(const Part& part);

}  // namespace fairlead::wire
