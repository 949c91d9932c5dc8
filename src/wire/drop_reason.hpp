#pragma once
// Why a datagram is not a frame. Decode is total: any byte string is a frame or exactly one of these (docs/wire.md).

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

/// "too short", "wrong checksum", ... in lower case.
std::string_view to_string(DropReason reason) noexcept;
/// What it means, for people.
std::string_view explain(DropReason reason) noexcept;

}  // namespace fairlead::wire
