#pragma once
// What stands in a record of the same-host lane before the payload. Both ends run on one host, so the words lie as the
// processor has them; all else is checked like what comes from a network.
//
//   brief: 16 bytes, then a whole message without key, cookie, offset and `a`: with 32 bytes of payload it is one line
//   turn:  24 bytes, then a whole message of which only half a key (the upper) and half an `a` (the lower) are not 0
//   named: 40 bytes, then a whole message without offset
//   whole: 48 bytes, then a whole message
//   first: 56 bytes (as whole, and the length of the message), then its first bytes
//   next:  16 bytes, then more bytes of the message that `first` began; one such message at a time
//   many:  16 bytes, then short messages that differ in nothing else, each behind its length in 2 bytes
//   there: 64 bytes (as first, and a place), and no payload: the message lies there in the sender's arena

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "wire/envelope.hpp"

namespace fairlead::wire {

enum class LaneKind : std::uint8_t {
  brief = 1,
  whole = 2,
  first = 3,
  next = 4,
  turn = 5,
  named = 6,
  there = 7,
  many = 8
};

struct LaneHead {
  LaneKind kind = LaneKind::brief;
  std::uint8_t operation = 0;
  std::uint16_t flags = 0;
  std::uint32_t source_port = 0;
  std::uint32_t target_port = 0;
  std::uint8_t status = 0;
  std::uint8_t reserved[3] = {};
};
struct LaneTurn {
  std::uint32_t key = 0, a = 0;
};
struct LaneNames {
  std::uint64_t key = 0, cookie = 0, a = 0;
};
struct LaneWide {
  LaneNames names;
  std::uint64_t offset = 0;
};
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(LaneHead) == 16 && sizeof(LaneTurn) == 8 && sizeof(LaneNames) == 24 && sizeof(LaneWide) == 32);

/// Put together in registers: a copy of what was just written field by field would wait for it.
inline void store_lane_head(std::byte* out, const LaneHead& head) {
  const std::uint64_t first = static_cast<std::uint64_t>(head.kind) | std::uint64_t{head.operation} << 8 |
                              std::uint64_t{head.flags} << 16 | std::uint64_t{head.source_port} << 32;
  const std::uint64_t second = std::uint64_t{head.target_port} | std::uint64_t{head.status} << 32;
  std::memcpy(out, &first, sizeof first);
  std::memcpy(out + sizeof first, &second, sizeof second);
}

/// Bytes before the payload.
constexpr std::size_t lane_head_bytes(LaneKind kind) {
  switch (kind) {
    case LaneKind::brief:
    case LaneKind::next:
    case LaneKind::many:
      return sizeof(LaneHead);
    case LaneKind::turn:
      return sizeof(LaneHead) + sizeof(LaneTurn);
    case LaneKind::named:
      return sizeof(LaneHead) + sizeof(LaneNames);
    case LaneKind::whole:
      return sizeof(LaneHead) + sizeof(LaneWide);
    case LaneKind::there:
      return sizeof(LaneHead) + sizeof(LaneWide) + 2 * sizeof(std::uint64_t);
    case LaneKind::first:
      break;
  }
  return sizeof(LaneHead) + sizeof(LaneWide) + sizeof(std::uint64_t);
}

/// The kind of record that a whole message with this envelope needs.
constexpr LaneKind lane_kind_of(const Envelope& envelope) {
  constexpr std::uint64_t kLower = 0xFFFF'FFFF;
  if (envelope.offset != 0) return LaneKind::whole;
  if (((envelope.key & kLower) | envelope.cookie | (envelope.a & ~kLower)) != 0) return LaneKind::named;
  return (envelope.key | envelope.a) != 0 ? LaneKind::turn : LaneKind::brief;
}

/// Writes what stands before the payload.
inline void encode_lane(std::byte* out, LaneKind kind, const Envelope& envelope, std::uint64_t message_bytes,
                        std::uint64_t place = 0) {
  const LaneHead head{.kind = kind,
                      .operation = static_cast<std::uint8_t>(envelope.operation),
                      .flags = envelope.flags,
                      .source_port = envelope.source_port,
                      .target_port = envelope.target_port,
                      .status = envelope.status};
  store_lane_head(out, head);
  if (kind == LaneKind::brief || kind == LaneKind::next || kind == LaneKind::many) return;
  if (kind == LaneKind::turn) {
    const LaneTurn turn{static_cast<std::uint32_t>(envelope.key >> 32), static_cast<std::uint32_t>(envelope.a)};
    std::memcpy(out + sizeof head, &turn, sizeof turn);
    return;
  }
  const LaneWide wide{{envelope.key, envelope.cookie, envelope.a}, envelope.offset};
  std::memcpy(out + sizeof head, &wide.names, sizeof wide.names);
  if (kind == LaneKind::named) return;
  std::memcpy(out + sizeof head, &wide, sizeof wide);
  if (kind == LaneKind::whole) return;
  std::memcpy(out + sizeof head + sizeof wide, &message_bytes, sizeof message_bytes);
  if (kind == LaneKind::there) std::memcpy(out + sizeof head + sizeof wide + 8, &place, sizeof place);
}

struct LaneRecord {
  LaneKind kind = LaneKind::brief;
  Envelope envelope;                // not of `next`
  std::uint64_t message_bytes = 0;  // not of `next`
  std::uint64_t place = 0;          // of `there`
  std::span<const std::byte> payload;
};

/// The length before each message of a record of `many`.
using LaneLength = std::uint16_t;

/// Cuts the next message off the rest of such a record; false if it does not lie in it.
inline bool take_lane_message(std::span<const std::byte>& rest, std::span<const std::byte>& message) {
  LaneLength length = 0;
  if (rest.size() < sizeof length) return false;
  std::memcpy(&length, rest.data(), sizeof length);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // what is checked is what is used
  if (length > rest.size() - sizeof length) return false;
  message = rest.subspan(sizeof length, length);
  rest = rest.subspan(sizeof length + length);
  return true;
}

/// Whether it is a brief record; its head is copied before it is looked at.
inline bool is_brief_lane(std::span<const std::byte> body, LaneHead& head) {
  if (body.size() < sizeof head) return false;
  std::memcpy(&head, body.data(), sizeof head);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // what is checked is what is used
  return head.kind == LaneKind::brief;
}

/// Whether it is of that kind, of which `head` is a copy; the rest of its head is copied, too.
template <typename Rest>
inline bool is_lane_of(LaneKind kind, std::span<const std::byte> body, const LaneHead& head, Rest& rest) {
  if (head.kind != kind || body.size() < sizeof head + sizeof rest) return false;
  std::memcpy(&rest, body.data() + sizeof head, sizeof rest);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return true;
}
inline bool is_turn_lane(std::span<const std::byte> body, const LaneHead& head, LaneTurn& turn) {
  return is_lane_of(LaneKind::turn, body, head, turn);
}

/// Whether records of that kind are whole messages with their payload.
constexpr bool is_whole_lane(LaneKind kind) {
  return kind == LaneKind::brief || kind == LaneKind::turn || kind == LaneKind::named || kind == LaneKind::whole;
}

/// Kind and envelope of a record (the envelope not of `next`); false if it is none. All is copied before it is looked
/// at.
inline bool decode_lane_envelope(std::span<const std::byte> body, LaneKind& kind, Envelope& envelope) {
  LaneHead head;
  if (body.size() < sizeof head) return false;
  std::memcpy(&head, body.data(), sizeof head);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // what is checked is what is used
  if (head.kind < LaneKind::brief || head.kind > LaneKind::many || body.size() < lane_head_bytes(head.kind))
    return false;
  LaneWide wide;
  if (head.kind == LaneKind::turn) {
    LaneTurn turn;
    std::memcpy(&turn, body.data() + sizeof head, sizeof turn);
    wide.names.key = static_cast<std::uint64_t>(turn.key) << 32;
    wide.names.a = turn.a;
  } else if (head.kind == LaneKind::named) {
    std::memcpy(&wide.names, body.data() + sizeof head, sizeof wide.names);
  } else if (head.kind == LaneKind::whole || head.kind == LaneKind::first || head.kind == LaneKind::there) {
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

/// False if it is no record. The payload stays where it is.
inline bool decode_lane(std::span<const std::byte> body, LaneRecord& record) {
  if (!decode_lane_envelope(body, record.kind, record.envelope)) return false;
  record.payload = body.subspan(lane_head_bytes(record.kind));
  record.message_bytes = record.payload.size();
  if (record.kind != LaneKind::first && record.kind != LaneKind::there) return true;
  constexpr std::size_t kBefore = sizeof(LaneHead) + sizeof(LaneWide);
  std::memcpy(&record.message_bytes, body.data() + kBefore, sizeof record.message_bytes);
  if (record.kind == LaneKind::there)
    std::memcpy(&record.place, body.data() + kBefore + sizeof record.message_bytes, sizeof record.place);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return record.kind == LaneKind::there ? record.payload.empty() : record.payload.size() <= record.message_bytes;
}

}  // namespace fairlead::wire
