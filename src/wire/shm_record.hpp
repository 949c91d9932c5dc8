#pragma once
// The head of a record of the shared-memory transport. Both ends run on one host, so words are in the processor's byte
// order. Everything else is checked like input from a network.
//
//   inlined:      16 bytes, then a whole message without key, cookie, offset and `a`: with 32 bytes of payload one line
//   ordered:      24 bytes, then a whole message with only the upper half of a key and the lower half of an `a`
//   tagged:       40 bytes, then a whole message without offset
//   whole:        48 bytes, then a whole message
//   first:        56 bytes (as whole, and the length of the message), then its first bytes
//   next:         16 bytes, then more bytes of the message that `first` began; one such message at a time
//   batch:        16 bytes, then short messages with the same head, each behind its length in 2 bytes
//   by_reference: 72 bytes (as first, a place and a ticket), and no payload: the message lies at that place in the
//                 sender's arena, or in its traced memory (kPlaceIsTraced), while the ticket is valid
//   taken_back:   16 bytes: the message that `first` began does not go on

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "wire/envelope.hpp"

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

struct ShmHead {
  ShmKind kind = ShmKind::inlined;
  std::uint8_t operation = 0;
  std::uint16_t flags = 0;
  std::uint32_t source_port = 0;
  std::uint32_t target_port = 0;
  std::uint8_t status = 0;
  std::uint8_t reserved[3] = {};
};
struct ShmOrdered {
  std::uint32_t key = 0, a = 0;
};
struct ShmTags {
  std::uint64_t key = 0, cookie = 0, a = 0;
};
struct ShmWide {
  ShmTags names;
  std::uint64_t offset = 0;
};
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(ShmHead) == 16 && sizeof(ShmOrdered) == 8 && sizeof(ShmTags) == 24 && sizeof(ShmWide) == 32);

/// Builds the head in registers: a 16-byte load after field-by-field stores would stall on store forwarding.
inline void store_shm_head(std::byte* out, const ShmHead& head) {
  const std::uint64_t first = static_cast<std::uint64_t>(head.kind) | std::uint64_t{head.operation} << 8 |
                              std::uint64_t{head.flags} << 16 | std::uint64_t{head.source_port} << 32;
  const std::uint64_t second = std::uint64_t{head.target_port} | std::uint64_t{head.status} << 32;
  std::memcpy(out, &first, sizeof first);
  std::memcpy(out + sizeof first, &second, sizeof second);
}

/// Bytes of the head, before the payload.
constexpr std::size_t shm_head_bytes(ShmKind kind) {
  switch (kind) {
    case ShmKind::inlined:
    case ShmKind::next:
    case ShmKind::batch:
    case ShmKind::taken_back:
      return sizeof(ShmHead);
    case ShmKind::ordered:
      return sizeof(ShmHead) + sizeof(ShmOrdered);
    case ShmKind::tagged:
      return sizeof(ShmHead) + sizeof(ShmTags);
    case ShmKind::whole:
      return sizeof(ShmHead) + sizeof(ShmWide);
    case ShmKind::by_reference:
      return sizeof(ShmHead) + sizeof(ShmWide) + 3 * sizeof(std::uint64_t);
    case ShmKind::first:
      break;
  }
  return sizeof(ShmHead) + sizeof(ShmWide) + sizeof(std::uint64_t);
}

/// Returns the kind of record that a whole message with this envelope needs.
constexpr ShmKind shm_kind_of(const Envelope& envelope) {
  constexpr std::uint64_t kLower = 0xFFFF'FFFF;
  if (envelope.offset != 0) return ShmKind::whole;
  if (((envelope.key & kLower) | envelope.cookie | (envelope.a & ~kLower)) != 0) return ShmKind::tagged;
  return (envelope.key | envelope.a) != 0 ? ShmKind::ordered : ShmKind::inlined;
}

/// Writes the head of a record.
inline void encode_shm(std::byte* out, ShmKind kind, const Envelope& envelope, std::uint64_t message_bytes,
                       std::uint64_t place = 0, std::uint64_t ticket = 0) {
  const ShmHead head{.kind = kind,
                     .operation = static_cast<std::uint8_t>(envelope.operation),
                     .flags = envelope.flags,
                     .source_port = envelope.source_port,
                     .target_port = envelope.target_port,
                     .status = envelope.status};
  store_shm_head(out, head);
  if (shm_head_bytes(kind) == sizeof head) return;
  if (kind == ShmKind::ordered) {
    const ShmOrdered turn{static_cast<std::uint32_t>(envelope.key >> 32), static_cast<std::uint32_t>(envelope.a)};
    std::memcpy(out + sizeof head, &turn, sizeof turn);
    return;
  }
  const ShmWide wide{{envelope.key, envelope.cookie, envelope.a}, envelope.offset};
  std::memcpy(out + sizeof head, &wide.names, sizeof wide.names);
  if (kind == ShmKind::tagged) return;
  std::memcpy(out + sizeof head, &wide, sizeof wide);
  if (kind == ShmKind::whole) return;
  std::memcpy(out + sizeof head + sizeof wide, &message_bytes, sizeof message_bytes);
  if (kind != ShmKind::by_reference) return;
  std::memcpy(out + sizeof head + sizeof wide + 8, &place, sizeof place);
  std::memcpy(out + sizeof head + sizeof wide + 16, &ticket, sizeof ticket);
}

/// In a place: it is one in the sender's traced memory (shm/traced_memory.hpp).
inline constexpr std::uint64_t kPlaceIsTraced = std::uint64_t{1} << 63;

struct ShmRecord {
  ShmKind kind = ShmKind::inlined;
  Envelope envelope;                    // not valid for `next`
  std::uint64_t message_bytes = 0;      // not valid for `next`
  std::uint64_t place = 0, ticket = 0;  // only for `by_reference`
  std::span<const std::byte> payload;
};

/// Length before each message in a `batch` record.
using ShmLength = std::uint16_t;

/// Takes the next message from the rest of such a record; returns false if it exceeds the record.
inline bool take_batched(std::span<const std::byte>& rest, std::span<const std::byte>& message) {
  ShmLength length = 0;
  if (rest.size() < sizeof length) return false;
  std::memcpy(&length, rest.data(), sizeof length);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the checked copy is the one used
  if (length > rest.size() - sizeof length) return false;
  message = rest.subspan(sizeof length, length);
  rest = rest.subspan(sizeof length + length);
  return true;
}

/// Returns whether this is an inlined record. Its head is copied first, since the peer could change it meanwhile.
inline bool is_inlined(std::span<const std::byte> body, ShmHead& head) {
  if (body.size() < sizeof head) return false;
  std::memcpy(&head, body.data(), sizeof head);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the checked copy is the one used
  return head.kind == ShmKind::inlined;
}

/// Returns whether `head`, a copy, is of this kind; the rest of the head is copied too.
template <typename Rest>
inline bool is_shm_kind(ShmKind kind, std::span<const std::byte> body, const ShmHead& head, Rest& rest) {
  if (head.kind != kind || body.size() < sizeof head + sizeof rest) return false;
  std::memcpy(&rest, body.data() + sizeof head, sizeof rest);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return true;
}
inline bool is_ordered(std::span<const std::byte> body, const ShmHead& head, ShmOrdered& turn) {
  return is_shm_kind(ShmKind::ordered, body, head, turn);
}

/// Returns whether records of this kind are whole messages with their payload.
constexpr bool is_whole(ShmKind kind) {
  return kind == ShmKind::inlined || kind == ShmKind::ordered || kind == ShmKind::tagged || kind == ShmKind::whole;
}

/// Decodes kind and envelope of a record (no envelope for `next`); returns false if it is invalid. Every field is
/// copied before it is checked.
inline bool decode_shm_envelope(std::span<const std::byte> body, ShmKind& kind, Envelope& envelope) {
  ShmHead head;
  if (body.size() < sizeof head) return false;
  std::memcpy(&head, body.data(), sizeof head);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the checked copy is the one used
  if (head.kind < ShmKind::inlined || head.kind > ShmKind::taken_back || body.size() < shm_head_bytes(head.kind))
    return false;
  ShmWide wide;
  if (head.kind == ShmKind::ordered) {
    ShmOrdered turn;
    std::memcpy(&turn, body.data() + sizeof head, sizeof turn);
    wide.names.key = static_cast<std::uint64_t>(turn.key) << 32;
    wide.names.a = turn.a;
  } else if (head.kind == ShmKind::tagged) {
    std::memcpy(&wide.names, body.data() + sizeof head, sizeof wide.names);
  } else if (head.kind == ShmKind::whole || head.kind == ShmKind::first || head.kind == ShmKind::by_reference) {
    std::memcpy(&wide, body.data() + sizeof head, sizeof wide);
  }
  kind = head.kind;
  envelope = {.operation = static_cast<Operation>(head.operation),
              .status = head.status,
              .flags = head.flags,
              .source_port = head.source_port,
              .target_port = head.target_port,
              .key = wide.names.key,
              .cookie = wide.names.cookie,
              .offset = wide.offset,
              .a = wide.names.a};
  return true;
}

/// Decodes a record; returns false if it is invalid. The payload is not copied.
inline bool decode_shm(std::span<const std::byte> body, ShmRecord& record) {
  if (!decode_shm_envelope(body, record.kind, record.envelope)) return false;
  record.payload = body.subspan(shm_head_bytes(record.kind));
  record.message_bytes = record.payload.size();
  if (record.kind != ShmKind::first && record.kind != ShmKind::by_reference) return true;
  constexpr std::size_t kBefore = sizeof(ShmHead) + sizeof(ShmWide);
  std::memcpy(&record.message_bytes, body.data() + kBefore, sizeof record.message_bytes);
  if (record.kind == ShmKind::by_reference) {
    std::memcpy(&record.place, body.data() + kBefore + 8, sizeof record.place);
    std::memcpy(&record.ticket, body.data() + kBefore + 16, sizeof record.ticket);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return record.kind == ShmKind::by_reference ? record.payload.empty() : record.payload.size() <= record.message_bytes;
}

}  // namespace fairlead::wire
