#include "wire/record.hpp"

#include <algorithm>

namespace fairlead::wire {
namespace {

constexpr std::size_t kKind = at<std::uint8_t>(kRecordFields, "kind");
constexpr std::size_t kOperation = at<std::uint8_t>(kRecordFields, "operation");
constexpr std::size_t kReserved = at<std::uint8_t>(kRecordFields, "reserved");
constexpr std::size_t kBytes = at<std::uint16_t>(kRecordFields, "bytes");

void encode(RecordKind kind, const Envelope& envelope, std::uint16_t bytes, std::byte* to) {
  store(to, kKind, kind);
  store(to, kOperation, envelope.operation);
  store(to, at<std::uint8_t>(kRecordFields, "status"), envelope.status);
  store(to, kReserved, std::uint8_t{0});
  store(to, at<std::uint16_t>(kRecordFields, "flags"), envelope.flags);
  store(to, kBytes, bytes);
  store(to, at<std::uint32_t>(kRecordFields, "source_port"), envelope.source_port);
  store(to, at<std::uint32_t>(kRecordFields, "target_port"), envelope.target_port);
  store(to, at<std::uint64_t>(kRecordFields, "key"), envelope.key);
  store(to, at<std::uint64_t>(kRecordFields, "cookie"), envelope.cookie);
  store(to, at<std::uint64_t>(kRecordFields, "offset"), envelope.offset);
  store(to, at<std::uint64_t>(kRecordFields, "a"), envelope.a);
}

constexpr std::size_t head_bytes(RecordKind kind) {
  return kind == RecordKind::whole ? kRecordBytes : kRecordBytes + kChunkBytes;
}

void encode_part_of(RecordKind kind, const Envelope& envelope, const Chunk& chunk, std::uint16_t bytes, std::byte* to) {
  encode(kind, envelope, bytes, to);
  to += kRecordBytes;
  store(to, at<std::uint32_t>(kChunkFields, "message"), chunk.message);
  store(to, at<std::uint32_t>(kChunkFields, "slot"), chunk.slot);
  store(to, at<std::uint64_t>(kChunkFields, "size"), chunk.size);
  store(to, at<std::uint64_t>(kChunkFields, "chunk_offset"), chunk.offset);
}

}  // namespace

void encode_whole(const Envelope& envelope, std::uint16_t bytes, std::byte* to) {
  encode(RecordKind::whole, envelope, bytes, to);
}

void encode_chunk(const Envelope& envelope, const Chunk& chunk, std::uint16_t bytes, std::byte* to) {
  encode_part_of(RecordKind::chunk, envelope, chunk, bytes, to);
}

void encode_void(const Envelope& envelope, const Chunk& chunk, std::byte* to) {
  encode_part_of(RecordKind::voided, envelope, chunk, 0, to);
}

void encode_cookie(std::uint64_t cookie, std::byte* to) {
  store(to, at<std::uint64_t>(kRecordFields, "cookie"), cookie);
}

bool is_run_of_records(std::span<const std::byte> payload) {
  const std::size_t end = payload.size();
  std::size_t begin = 0;
  while (begin < end) {
    if (end - begin < kRecordBytes) return false;
    const std::byte* record = payload.data() + begin;
    const auto kind = load<RecordKind>(record, kKind);
    if (kind < RecordKind::whole || kind > RecordKind::voided) return false;
    const auto operation = load<std::uint8_t>(record, kOperation);
    if (operation < static_cast<std::uint8_t>(Operation::message) ||
        operation > static_cast<std::uint8_t>(kOperationLast) || load<std::uint8_t>(record, kReserved) != 0) {
      return false;
    }
    const std::size_t length = head_bytes(kind) + load<std::uint16_t>(record, kBytes);
    if (length > end - begin) return false;
    if (kind == RecordKind::voided && length != head_bytes(kind)) return false;
    if (kind != RecordKind::whole) return begin == 0 && length == end;
    begin += length == end - begin ? length : aligned(length);
  }
  return end != 0 && begin == end;
}

Record RecordReader::next() {
  const std::byte* from = rest_.data();
  Record record;
  record.kind = load<RecordKind>(from, kKind);
  Envelope& envelope = record.envelope;
  envelope.operation = load<Operation>(from, kOperation);
  envelope.status = load<std::uint8_t>(from, at<std::uint8_t>(kRecordFields, "status"));
  envelope.flags = load<std::uint16_t>(from, at<std::uint16_t>(kRecordFields, "flags"));
  envelope.source_port = load<std::uint32_t>(from, at<std::uint32_t>(kRecordFields, "source_port"));
  envelope.target_port = load<std::uint32_t>(from, at<std::uint32_t>(kRecordFields, "target_port"));
  envelope.key = load<std::uint64_t>(from, at<std::uint64_t>(kRecordFields, "key"));
  envelope.cookie = load<std::uint64_t>(from, at<std::uint64_t>(kRecordFields, "cookie"));
  envelope.offset = load<std::uint64_t>(from, at<std::uint64_t>(kRecordFields, "offset"));
  envelope.a = load<std::uint64_t>(from, at<std::uint64_t>(kRecordFields, "a"));
  if (record.kind != RecordKind::whole) {
    const std::byte* chunk = from + kRecordBytes;
    record.chunk.message = load<std::uint32_t>(chunk, at<std::uint32_t>(kChunkFields, "message"));
    record.chunk.slot = load<std::uint32_t>(chunk, at<std::uint32_t>(kChunkFields, "slot"));
    record.chunk.size = load<std::uint64_t>(chunk, at<std::uint64_t>(kChunkFields, "size"));
    record.chunk.offset = load<std::uint64_t>(chunk, at<std::uint64_t>(kChunkFields, "chunk_offset"));
  }
  record.bytes = rest_.subspan(head_bytes(record.kind), load<std::uint16_t>(from, kBytes));
  rest_ = rest_.subspan(std::min(rest_.size(), aligned(head_bytes(record.kind) + record.bytes.size())));
  return record;
}

}  // namespace fairlead::wire
