#pragma once
// The head of a record of the shared-memory transport: its kinds and fields. Both ends run on one host, so words are in
// the processor's byte order. The payload follows the head.
//
//   inlined:      a whole message without key, cookie, offset and `a`: with 32 bytes of payload one line
//   ordered:      a whole message with only the upper half of a key and the lower half of an `a`
//   tagged:       a whole message without offset
//   whole:        a whole message
//   first:        the first bytes of a message of `message_bytes`
//   next:         more bytes of the message that `first` began; one such message at a time
//   batch:        short messages with the same head, each behind its length in 2 bytes
//   by_reference: no payload: the message lies at `place` in the sender's arena, or in its traced memory
//                 (kPlaceIsTraced), while the ticket is valid
//   taken_back:   no payload: the message that `first` began does not go on

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "wire/layout.hpp"

namespace fairlead::wire {

enum class ShmKind : std::uint8_t {
  inlined = 1,
  whole = 2,
  first = 3,
  next = 4,
  ordered = 5,
  tagged = 6,
  by_reference = 7,
  batch = 8,
  taken_back = 9
};
inline constexpr ShmKind kShmKindLast = ShmKind::taken_back;

/// The longest head. The head of any other kind is a beginning of it, except that of `ordered`.
inline constexpr std::array kShmFields{
    Field{"kind", 0, 1},           Field{"operation", 1, 1}, Field{"flags", 2, 2},     Field{"source_port", 4, 4},
    Field{"target_port", 8, 4},    Field{"status", 12, 1},   Field{"reserved", 13, 1}, Field{"reserved_word", 14, 2},
    Field{"key", 16, 8},           Field{"cookie", 24, 8},   Field{"a", 32, 8},        Field{"offset", 40, 8},
    Field{"message_bytes", 48, 8}, Field{"place", 56, 8},    Field{"ticket", 64, 8},
};
/// Follows the common beginning in an ordered record.
inline constexpr std::array kShmOrderedFields{
    Field{"upper_key", 0, 4},
    Field{"lower_a", 4, 4},
};
static_assert(is_dense(kShmFields) && is_dense(kShmOrderedFields));

/// Returns the length of a head that ends with this field.
consteval std::size_t shm_bytes_up_to(std::string_view name) {
  for (const Field& field : kShmFields)
    if (field.name == name) return field.offset + field.size;
  throw "no such field";
}
inline constexpr std::size_t kShmHeadBytes = shm_bytes_up_to("reserved_word");  // of every kind's beginning
inline constexpr std::size_t kShmOrderedBytes = size_of(kShmOrderedFields);

struct ShmForm {
  ShmKind kind;
  bool is_whole;  // its payload is a whole message
  std::uint16_t head_bytes;
};
inline constexpr std::array kShmForms{
    ShmForm{ShmKind::inlined, true, kShmHeadBytes},
    ShmForm{ShmKind::whole, true, shm_bytes_up_to("offset")},
    ShmForm{ShmKind::first, false, shm_bytes_up_to("message_bytes")},
    ShmForm{ShmKind::next, false, kShmHeadBytes},
    ShmForm{ShmKind::ordered, true, kShmHeadBytes + kShmOrderedBytes},
    ShmForm{ShmKind::tagged, true, shm_bytes_up_to("a")},
    ShmForm{ShmKind::by_reference, false, shm_bytes_up_to("ticket")},
    ShmForm{ShmKind::batch, false, kShmHeadBytes},
    ShmForm{ShmKind::taken_back, false, kShmHeadBytes},
};
static_assert([] {
  for (std::size_t i = 0; i < kShmForms.size(); ++i)
    if (std::to_underlying(kShmForms[i].kind) != i + 1) return false;
  return kShmForms.back().kind == kShmKindLast;
}());

/// The kind has to be valid.
constexpr const ShmForm& shm_form(ShmKind kind) {
  return kShmForms[std::to_underlying(kind) - 1U];
}
/// Bytes of the head, before the payload.
constexpr std::size_t shm_head_bytes(ShmKind kind) {
  return shm_form(kind).head_bytes;
}
/// Returns whether records of this kind are whole messages with their payload.
constexpr bool is_whole(ShmKind kind) {
  return shm_form(kind).is_whole;
}
constexpr bool is_shm_kind(ShmKind kind) {
  return kind >= ShmKind::inlined && kind <= kShmKindLast;
}

}  // namespace fairlead::wire
