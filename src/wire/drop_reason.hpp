#pragma once
// Why a datagram is not a frame. Decode is total: any byte string is a frame or exactly one of these (docs/wire.md).

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fairlead::wire {

enum class DropReason : std::uint8_t {
  too_short,          // fewer bytes than a segment header
  wrong_version,      // of another protocol version, or not of this protocol at all
  wrong_kind,         // a kind of segment that this version does not know
  wrong_length,       // the header's payload length is not what arrived, or not what this kind has
  wrong_checksum,     // damaged on the way
  reserved_not_zero,  // bits that this version sends as zero
  bad_token,          // a token where none may be, or none where one must be
  bad_hello,          // impossible values in a hello
  bad_record,         // a record of a message does not fit its segment or has an unknown kind
};
inline constexpr std::size_t kDropReasons = static_cast<std::size_t>(DropReason::bad_record) + 1;

/// "too short", "wrong checksum", ... in lower case.
std::string_view to_string(DropReason reason) noexcept;

}  // namespace fairlead::wire
