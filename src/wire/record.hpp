#pragma once
// The payload of a data segment: either one chunk of a long message, or whole messages, each at a multiple of 8 bytes.
// A record names the operation and the ports itself, so that each can be placed at once. A void record has no bytes:
// its sender has taken back the message that Chunk names.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/envelope.hpp"
#include "wire/layout.hpp"

namespace fairlead::wire {

enum class RecordKind : std::uint8_t { whole = 1, chunk = 2, voided = 3 };

/// Position of a chunk in its message.
struct Chunk {
  std::uint32_t message = 0;  // the sender's number of the message
  std::uint32_t slot = 0;     // the receiver's reassembly slot that the sender uses for it
  std::uint64_t size = 0;     // of the whole message
  std::uint64_t offset = 0;   // of these bytes in the message
};

struct Record {
  RecordKind kind = RecordKind::whole;
  Envelope envelope;
  Chunk chunk;  // unless the record is whole
  std::span<const std::byte> bytes;
};

/// Bytes that a whole message of `size` bytes takes in a segment, without padding.
constexpr std::size_t whole_bytes(std::size_t size) {
  return kRecordBytes + size;
}
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kRecordAlign - 1) & ~(kRecordAlign - 1);
}

/// These write the head of a record; its `bytes` follow it.
void encode_whole(const Envelope& envelope, std::uint16_t bytes, std::byte* to);
void encode_chunk(const Envelope& envelope, const Chunk& chunk, std::uint16_t bytes, std::byte* to);
/// Replaces the cookie of a record.
void encode_cookie(std::uint64_t cookie, std::byte* to);
/// Slot of a message that was sent whole, or was not begun.
inline constexpr std::uint32_t kNoSlot = ~0U;
void encode_void(const Envelope& envelope, const Chunk& chunk, std::byte* to);

/// Returns whether a payload is a valid run of records.
bool is_run_of_records(std::span<const std::byte> payload);

/// Reads such a run, record by record.
class RecordReader {
 public:
  RecordReader() = default;
  explicit RecordReader(std::span<const std::byte> run) : rest_(run) {}
  bool is_empty() const { return rest_.empty(); }
  Record next();

 private:
  std::span<const std::byte> rest_;
};

}  // namespace fairlead::wire
