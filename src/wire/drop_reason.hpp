#pragma once
// Why a datagram is not a frame. Decoding is total: any byte string is a frame, or has exactly one of these reasons
// (docs/wire.md).

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fairlead::wire {

enum class DropReason : std::uint8_t {
  too_short,
  wrong_version,
  wrong_kind,
  wrong_length,
  wrong_checksum,
  reserved_not_zero,
  bad_token,
  bad_hello,
  bad_record,
};
inline constexpr std::size_t kDropReasons = static_cast<std::size_t>(DropReason::bad_record) + 1;

/// Returns the reason in lower-case words: "too short", "wrong checksum", ...
std::string_view to_string(DropReason reason) noexcept;
/// Returns a sentence for people.
std::string_view explain(DropReason reason) noexcept;

}  // namespace fairlead::wire
