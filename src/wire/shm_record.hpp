#pragma once
// Writes and reads the head of a record of the shared-memory transport (wire/shm_layout.hpp). The peer may change a
// record while it is read, so each field is copied once, and the copy is checked like input from a network.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "wire/envelope.hpp"
#include "wire/shm_layout.hpp"

namespace fairlead::wire {

/// The beginning that all kinds share.
struct ShmHead {
  ShmKind kind = ShmKind::inlined;
  std::uint8_t operation = 0;
  std::uint16_t flags = 0;
  std::uint32_t source_port = 0;
  std::uint32_t target_port = 0;
  std::uint8_t status = 0;
  std::uint8_t reserved[3] = {};
};
/// What follows it in an ordered record.
struct ShmOrdered {
  std::uint32_t key = 0, a = 0;
};
static_assert(sizeof(ShmHead) == kShmHeadBytes && sizeof(ShmOrdered) == kShmOrderedBytes);
static_assert(offsetof(ShmHead, kind) == at<ShmKind>(kShmFields, "kind") &&
              offsetof(ShmHead, operation) == at<std::uint8_t>(kShmFields, "operation") &&
              offsetof(ShmHead, flags) == at<std::uint16_t>(kShmFields, "flags") &&
              offsetof(ShmHead, source_port) == at<std::uint32_t>(kShmFields, "source_port") &&
              offsetof(ShmHead, target_port) == at<std::uint32_t>(kShmFields, "target_port") &&
              offsetof(ShmHead, status) == at<std::uint8_t>(kShmFields, "status") &&
              offsetof(ShmOrdered, key) == at<std::uint32_t>(kShmOrderedFields, "upper_key") &&
              offsetof(ShmOrdered, a) == at<std::uint32_t>(kShmOrderedFields, "lower_a"));

/// Builds the head in registers: a 16-byte load after field-by-field stores would stall on store forwarding.
inline void store_shm_head(std::byte* out, const ShmHead& head) {
  constexpr std::size_t kSecond = sizeof(std::uint64_t);
  constexpr auto kBit = [](std::size_t offset) { return 8 * (offset % kSecond); };
  const std::uint64_t first = static_cast<std::uint64_t>(head.kind) << kBit(offsetof(ShmHead, kind)) |
                              std::uint64_t{head.operation} << kBit(offsetof(ShmHead, operation)) |
                              std::uint64_t{head.flags} << kBit(offsetof(ShmHead, flags)) |
                              std::uint64_t{head.source_port} << kBit(offsetof(ShmHead, source_port));
  const std::uint64_t second = std::uint64_t{head.target_port} << kBit(offsetof(ShmHead, target_port)) |
                               std::uint64_t{head.status} << kBit(offsetof(ShmHead, status));
  store(out, 0, first);
  store(out, kSecond, second);
}

/// Returns the kind of record that a whole message with this envelope needs.
constexpr ShmKind shm_kind_of(const Envelope& envelope) {
  constexpr std::uint64_t kLower = 0xFFFF'FFFF;
  if (envelope.offset != 0) return ShmKind::whole;
  if (((envelope.key & kLower) | envelope.cookie | (envelope.a & ~kLower)) != 0) return ShmKind::tagged;
  return (envelope.key | envelope.a) != 0 ? ShmKind::ordered : ShmKind::inlined;
}

/// Stores what follows the head of an ordered record.
inline void store_shm_ordered(std::byte* out, const ShmOrdered& words) {
  std::memcpy(out + kShmHeadBytes, &words, sizeof words);
}

/// Writes the head of a record.
inline void encode_shm(std::byte* out, ShmKind kind, const Envelope& envelope, std::uint64_t message_bytes,
                       std::uint64_t place = 0, std::uint64_t ticket = 0) {
  store_shm_head(out, {.kind = kind,
                       .operation = static_cast<std::uint8_t>(envelope.operation),
                       .flags = envelope.flags,
                       .source_port = envelope.source_port,
                       .target_port = envelope.target_port,
                       .status = envelope.status});
  const std::size_t bytes = shm_head_bytes(kind);
  if (bytes == kShmHeadBytes) return;
  if (kind == ShmKind::ordered)
    return store_shm_ordered(out,
                             {static_cast<std::uint32_t>(envelope.key >> 32), static_cast<std::uint32_t>(envelope.a)});
  store(out, at<std::uint64_t>(kShmFields, "key"), envelope.key);
  store(out, at<std::uint64_t>(kShmFields, "cookie"), envelope.cookie);
  store(out, at<std::uint64_t>(kShmFields, "a"), envelope.a);
  if (bytes == shm_bytes_up_to("a")) return;
  store(out, at<std::uint64_t>(kShmFields, "offset"), envelope.offset);
  if (bytes == shm_bytes_up_to("offset")) return;
  store(out, at<std::uint64_t>(kShmFields, "message_bytes"), message_bytes);
  if (bytes == shm_bytes_up_to("message_bytes")) return;
  store(out, at<std::uint64_t>(kShmFields, "place"), place);
  store(out, at<std::uint64_t>(kShmFields, "ticket"), ticket);
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
  if (rest.size() < sizeof(ShmLength)) return false;
  const auto length = load<ShmLength>(rest.data(), 0);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the checked copy is the one used
  if (length > rest.size() - sizeof length) return false;
  message = rest.subspan(sizeof length, length);
  rest = rest.subspan(sizeof length + length);
  return true;
}

/// Copies the beginning of a record; returns false if it is too short.
inline bool load_shm_head(std::span<const std::byte> body, ShmHead& head) {
  if (body.size() < sizeof head) return false;
  std::memcpy(&head, body.data(), sizeof head);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the checked copy is the one used
  return true;
}

/// Returns whether this is an inlined record. Its head is copied first, since the peer could change it meanwhile.
inline bool is_inlined(std::span<const std::byte> body, ShmHead& head) {
  return load_shm_head(body, head) && head.kind == ShmKind::inlined;
}

/// Decodes kind and envelope of a record (no envelope for `next`); returns false if it is invalid.
inline bool decode_shm_envelope(std::span<const std::byte> body, ShmKind& kind, Envelope& envelope) {
  ShmHead head;
  if (!load_shm_head(body, head) || !is_shm_kind(head.kind)) return false;
  const std::size_t bytes = shm_head_bytes(head.kind);
  if (body.size() < bytes) return false;
  kind = head.kind;
  envelope = {.operation = static_cast<Operation>(head.operation),
              .status = head.status,
              .flags = head.flags,
              .source_port = head.source_port,
              .target_port = head.target_port};
  if (head.kind == ShmKind::ordered) {
    const std::byte* const words = body.data() + kShmHeadBytes;
    envelope.key = std::uint64_t{load<std::uint32_t>(words, at<std::uint32_t>(kShmOrderedFields, "upper_key"))} << 32;
    envelope.a = load<std::uint32_t>(words, at<std::uint32_t>(kShmOrderedFields, "lower_a"));
  } else if (bytes > kShmHeadBytes) {
    envelope.key = load<std::uint64_t>(body.data(), at<std::uint64_t>(kShmFields, "key"));
    envelope.cookie = load<std::uint64_t>(body.data(), at<std::uint64_t>(kShmFields, "cookie"));
    envelope.a = load<std::uint64_t>(body.data(), at<std::uint64_t>(kShmFields, "a"));
    if (bytes >= shm_bytes_up_to("offset"))
      envelope.offset = load<std::uint64_t>(body.data(), at<std::uint64_t>(kShmFields, "offset"));
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return true;
}

/// Decodes a record; returns false if it is invalid. The payload is not copied.
inline bool decode_shm(std::span<const std::byte> body, ShmRecord& record) {
  if (!decode_shm_envelope(body, record.kind, record.envelope)) return false;
  record.payload = body.subspan(shm_head_bytes(record.kind));
  record.message_bytes = record.payload.size();
  if (record.kind != ShmKind::first && record.kind != ShmKind::by_reference) return true;
  record.message_bytes = load<std::uint64_t>(body.data(), at<std::uint64_t>(kShmFields, "message_bytes"));
  if (record.kind == ShmKind::by_reference) {
    record.place = load<std::uint64_t>(body.data(), at<std::uint64_t>(kShmFields, "place"));
    record.ticket = load<std::uint64_t>(body.data(), at<std::uint64_t>(kShmFields, "ticket"));
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return record.kind == ShmKind::by_reference ? record.payload.empty() : record.payload.size() <= record.message_bytes;
}

}  // namespace fairlead::wire
