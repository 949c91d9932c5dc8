// Any bytes decode to a frame or to a counted reason. A frame's payload can be read to its end, and its contents can be
// encoded again. The first byte says whether the rest gets a valid checksum, so that later checks are reached.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <source_location>
#include <vector>

#include "wire/checksum.hpp"
#include "wire/group_datagram.hpp"
#include "wire/hello.hpp"
#include "wire/record.hpp"
#include "wire/segment.hpp"

namespace {

using namespace fairlead;

void expect(bool is_true, std::source_location place = std::source_location::current()) {
  if (is_true) return;
  std::fprintf(stderr, "not so: %s:%u\n", place.file_name(), static_cast<unsigned>(place.line()));
  std::abort();
}

void read_records(std::span<const std::byte> payload) {
  std::size_t bytes = 0;
  for (wire::RecordReader reader(payload); !reader.is_empty();) {
    const wire::Record record = reader.next();
    bytes += record.bytes.size() + wire::kRecordBytes;
    const std::vector<std::byte> copy(record.bytes.begin(), record.bytes.end());  // reads all of them
    expect(copy.size() == record.bytes.size());
    std::vector<std::byte> again(wire::kRecordBytes + wire::kChunkBytes + record.bytes.size());
    const auto length = static_cast<std::uint16_t>(record.bytes.size());
    std::size_t head = wire::kRecordBytes;
    if (record.kind != wire::RecordKind::whole) head += wire::kChunkBytes;
    switch (record.kind) {
      case wire::RecordKind::whole:
        wire::encode_whole(record.envelope, length, again.data());
        break;
      case wire::RecordKind::chunk:
        wire::encode_chunk(record.envelope, record.chunk, length, again.data());
        break;
      case wire::RecordKind::voided:
        expect(length == 0 && bytes + wire::kChunkBytes == payload.size());
        wire::encode_void(record.envelope, record.chunk, again.data());
        break;
    }
    expect(std::memcmp(again.data(), record.bytes.data() - head, head) == 0);
  }
  expect(bytes <= payload.size());
}

/// Reads `frame` as if its tag were valid and this its decrypted payload.
void read_opened(const wire::Frame& frame) {
  const wire::Kind kind = frame.header.kind;
  if (kind == wire::Kind::hello) {
    const wire::ReturnAddress to = wire::read_return_address(frame.payload, true);
    std::vector<std::byte> again(wire::kSealedHelloBytes);
    wire::encode(to, again.data());
    expect(std::memcmp(again.data(), frame.payload.data(), 12) == 0);
    return;
  }
  if (kind == wire::Kind::hello_ack) return;
  expect(frame.payload.size() >= wire::kTagBytes);
  const auto plain = frame.payload.first(frame.payload.size() - wire::kTagBytes);
  if (!wire::check_payload(kind, plain) && kind == wire::Kind::data) read_records(plain);
}

/// The same for a datagram to a group.
void read_group(std::span<const std::byte> bytes, bool gets_checksum) {
  constexpr std::size_t kChecksum = wire::at<std::uint32_t>(wire::kGroupFields, "checksum");
  std::vector<std::byte> datagram(bytes.begin(), bytes.end());
  if (gets_checksum && datagram.size() >= wire::kGroupHeaderBytes) {
    wire::store(datagram.data(), kChecksum, std::uint32_t{0});
    wire::Checksum checksum;
    checksum.add(datagram);
    wire::store(datagram.data(), kChecksum, checksum.value());
  }
  const auto found = wire::decode_group(datagram);
  if (!found) return expect(static_cast<std::size_t>(found.error()) < wire::kDropReasons);
  std::vector<std::byte> again(wire::kGroupHeaderBytes);
  iovec piece{const_cast<std::byte*>(found->bytes.data()), found->bytes.size()};
  wire::encode_group(*found, {&piece, 1}, static_cast<std::uint32_t>(found->bytes.size()), again.data());
  expect(std::memcmp(again.data(), datagram.data(), again.size()) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  if ((data[0] & 2) != 0) read_group(bytes, (data[0] & 1) != 0);
  std::vector<std::byte> datagram(bytes.begin(), bytes.end());
  if ((data[0] & 1) != 0 && datagram.size() >= wire::kSegmentHeaderBytes) wire::add_checksum(datagram, {});

  const auto frame = wire::decode(datagram);
  if (!frame) {
    expect(static_cast<std::size_t>(frame.error()) < wire::kDropReasons);
    return 0;
  }
  std::vector<std::byte> header(wire::kSegmentHeaderBytes);
  wire::encode(frame->header, header.data());
  expect(std::memcmp(header.data(), datagram.data(), header.size() - sizeof(std::uint32_t)) == 0);
  if (frame->is_sealed()) {
    read_opened(*frame);
    return 0;
  }
  if (frame->header.kind == wire::Kind::data) read_records(frame->payload);
  if (frame->header.kind == wire::Kind::hello || frame->header.kind == wire::Kind::hello_ack) {
    expect(wire::is_possible(wire::read_hello(frame->payload)));
  }
  return 0;
}
