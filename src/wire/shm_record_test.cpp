#include "wire/shm_record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace fairlead::wire {
namespace {

constexpr Envelope kAll{.operation = Operation::pair_write,
                        .status = 0xA1,
                        .flags = 0xB1B2,
                        .source_port = 0xC1C2'C3C4,
                        .target_port = 0xD1D2'D3D4,
                        .key = 0xE1E2'E3E4'E5E6'E7E8,
                        .cookie = 0xF1F2'F3F4'F5F6'F7F8,
                        .offset = 0x1112'1314'1516'1718,
                        .a = 0x2122'2324'2526'2728};
constexpr std::uint64_t kMessageBytes = 0x31'3233, kPlace = 0x4142'4344'4546'4748, kTicket = 0x5152'5354'5556'5758;

std::vector<std::byte> encoded(ShmKind kind, const Envelope& envelope = kAll) {
  std::vector<std::byte> bytes(shm_head_bytes(kind));
  encode_shm(bytes.data(), kind, envelope, kMessageBytes, kPlace, kTicket);
  return bytes;
}

/// The value of a field of the longest head.
std::uint64_t value_of(std::string_view name, ShmKind kind) {
  if (name == "kind") return static_cast<std::uint64_t>(kind);
  if (name == "operation") return static_cast<std::uint64_t>(kAll.operation);
  if (name == "flags") return kAll.flags;
  if (name == "source_port") return kAll.source_port;
  if (name == "target_port") return kAll.target_port;
  if (name == "status") return kAll.status;
  if (name == "key") return kAll.key;
  if (name == "cookie") return kAll.cookie;
  if (name == "a") return kAll.a;
  if (name == "offset") return kAll.offset;
  if (name == "message_bytes") return kMessageBytes;
  if (name == "place") return kPlace;
  if (name == "ticket") return kTicket;
  return 0;  // reserved
}

TEST(ShmRecord, EachFieldIsWhereTheTableSays) {
  for (const ShmForm& form : kShmForms) {
    const auto bytes = encoded(form.kind);
    const std::size_t end = form.kind == ShmKind::ordered ? kShmHeadBytes : form.head_bytes;
    for (const Field& field : kShmFields) {
      if (field.offset >= end) break;
      std::uint64_t value = 0;
      std::memcpy(&value, bytes.data() + field.offset, field.size);
      EXPECT_EQ(value, value_of(field.name, form.kind)) << field.name << " of kind " << static_cast<int>(form.kind);
    }
  }
  const auto ordered = encoded(ShmKind::ordered);
  EXPECT_EQ(load<std::uint32_t>(ordered.data(), kShmHeadBytes), kAll.key >> 32);
  EXPECT_EQ(load<std::uint32_t>(ordered.data(), kShmHeadBytes + 4), static_cast<std::uint32_t>(kAll.a));
}

TEST(ShmRecord, EachKindIsReadAsItWasWritten) {
  for (const ShmForm& form : kShmForms) {
    const auto bytes = encoded(form.kind);
    ShmRecord record;
    ASSERT_TRUE(decode_shm(bytes, record));
    EXPECT_EQ(record.kind, form.kind);
    Envelope expected = kAll;
    if (form.kind == ShmKind::ordered) {
      expected.key &= ~std::uint64_t{0xFFFF'FFFF};
      expected.a &= 0xFFFF'FFFF;
      expected.cookie = expected.offset = 0;
    } else {
      if (form.head_bytes < shm_bytes_up_to("offset")) expected.offset = 0;
      if (form.head_bytes < shm_bytes_up_to("a")) expected.key = expected.cookie = expected.a = 0;
    }
    EXPECT_EQ(record.envelope, expected) << static_cast<int>(form.kind);
    const bool has_length = form.kind == ShmKind::first || form.kind == ShmKind::by_reference;
    EXPECT_EQ(record.message_bytes, has_length ? kMessageBytes : 0);
    const bool has_place = form.kind == ShmKind::by_reference;
    EXPECT_EQ(record.place, has_place ? kPlace : 0);
    EXPECT_EQ(record.ticket, has_place ? kTicket : 0);
    EXPECT_TRUE(record.payload.empty());
  }
}

TEST(ShmRecord, TheKindThatAnEnvelopeNeedsKeepsAllOfIt) {
  for (unsigned left_out = 0; left_out < 16; ++left_out) {
    for (const std::uint64_t half : {~std::uint64_t{0}, std::uint64_t{0xFFFF'FFFF}, ~std::uint64_t{0xFFFF'FFFF}}) {
      Envelope envelope = kAll;
      envelope.key = (left_out & 1) != 0 ? 0 : envelope.key & half;
      envelope.a = (left_out & 2) != 0 ? 0 : envelope.a & half;
      if ((left_out & 4) != 0) envelope.cookie = 0;
      if ((left_out & 8) != 0) envelope.offset = 0;
      const ShmKind kind = shm_kind_of(envelope);
      EXPECT_TRUE(is_whole(kind));
      ShmRecord record;
      ASSERT_TRUE(decode_shm(encoded(kind, envelope), record));
      EXPECT_EQ(record.envelope, envelope);
    }
  }
}

TEST(ShmRecord, ARecordShorterThanItsHeadIsRefused) {
  for (const ShmForm& form : kShmForms) {
    const auto bytes = encoded(form.kind);
    ShmRecord record;
    for (std::size_t length = 0; length < bytes.size(); ++length)
      EXPECT_FALSE(decode_shm(std::span(bytes).first(length), record)) << length << " of " << bytes.size();
  }
}

TEST(ShmRecord, OtherKindsAreRefused) {
  for (int kind = 0; kind < 256; ++kind) {
    std::vector<std::byte> bytes(shm_bytes_up_to("ticket"));
    bytes[0] = static_cast<std::byte>(kind);
    ShmKind read{};
    Envelope envelope;
    EXPECT_EQ(decode_shm_envelope(bytes, read, envelope), kind >= 1 && kind <= 9) << kind;
  }
}

}  // namespace
}  // namespace fairlead::wire
