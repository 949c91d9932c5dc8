#include "wire/segment.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "wire/hello.hpp"
#include "wire/record.hpp"

namespace fairlead::wire {
namespace {

std::vector<std::byte> datagram(Kind kind, std::vector<std::byte> payload, std::uint64_t token = 0x1122334455667788) {
  Header header;
  header.kind = kind;
  header.token = token;
  std::vector<std::byte> bytes(kSegmentHeaderBytes);
  encode(header, bytes.data());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  add_checksum(bytes, {});
  return bytes;
}

std::vector<std::byte> one_record(std::uint16_t size) {
  std::vector<std::byte> payload(kRecordBytes + size);
  encode_whole({}, size, payload.data());
  return payload;
}

std::vector<std::byte> valid_hello() {
  std::vector<std::byte> payload(kHelloBytes);
  encode(Hello{.epoch = 9,
               .token = 10,
               .window_bytes = 1 << 20,
               .initial_sequence = {0xfffffff0},
               .datagram_size_max = 1472,
               .window_segments = 1024,
               .reassembly_slots = 64,
               .ack_after = {390},
               .slot = 77},
         payload.data());
  return payload;
}

DropReason reason(std::vector<std::byte> bytes) {
  const auto frame = decode(bytes);
  EXPECT_FALSE(frame);
  return frame ? DropReason{0xff} : frame.error();
}

/// A datagram with one byte changed, and a matching checksum.
std::vector<std::byte> with_byte(std::vector<std::byte> bytes, std::size_t at, std::uint8_t value) {
  bytes[at] = static_cast<std::byte>(value);
  add_checksum(bytes, {});
  return bytes;
}

TEST(Segment, EveryFieldOfTheHeaderSurvives) {
  const Header header{.kind = Kind::ack,
                      .flags = Flags::kAll,
                      .slot = 0xabcdef,
                      .credits = 0x1234,
                      .token = 0x0123456789abcdef,
                      .sequence = {0xfffffffe},
                      .ack = {0x80000001},
                      .ack_bitmap = 0xa5a5a5a5a5a5a5a5,
                      .timestamp = {1},
                      .echo = {0xdeadbeef},
                      .echo_delay = {77}};
  std::vector<std::byte> bytes(kSegmentHeaderBytes);
  encode(header, bytes.data());
  add_checksum(bytes, {});
  const auto frame = decode(bytes);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->header.kind, header.kind);
  EXPECT_EQ(frame->header.flags, header.flags);
  EXPECT_EQ(frame->header.slot, header.slot);
  EXPECT_EQ(frame->header.credits, header.credits);
  EXPECT_EQ(frame->header.token, header.token);
  EXPECT_EQ(frame->header.sequence, header.sequence);
  EXPECT_EQ(frame->header.ack, header.ack);
  EXPECT_EQ(frame->header.ack_bitmap, header.ack_bitmap);
  EXPECT_EQ(frame->header.timestamp, header.timestamp);
  EXPECT_EQ(frame->header.echo, header.echo);
  EXPECT_EQ(frame->header.echo_delay, header.echo_delay);
}

TEST(Segment, TheBytesOfAHeaderStayAsTheyAre) {
  // The wire format is a promise to other versions: these bytes may never change.
  const std::vector<std::byte> bytes = datagram(Kind::close, {});
  const std::vector<unsigned> expected{2, 6, 0, 0, 0, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), expected[i]) << i;
  for (std::size_t i = expected.size(); i < 44; ++i) EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), 0U) << i;
}

TEST(Segment, EveryKindIsAccepted) {
  EXPECT_TRUE(decode(datagram(Kind::hello, valid_hello(), 0)));
  EXPECT_TRUE(decode(datagram(Kind::hello, valid_hello(), 1)));  // with its cookie
  EXPECT_TRUE(decode(datagram(Kind::hello_retry, std::vector<std::byte>(kRetryBytes))));
  EXPECT_TRUE(decode(datagram(Kind::hello_ack, valid_hello())));
  EXPECT_TRUE(decode(datagram(Kind::data, one_record(0))));
  EXPECT_TRUE(decode(datagram(Kind::ack, {})));
  EXPECT_TRUE(decode(datagram(Kind::ack, std::vector<std::byte>(63 * 8))));
  EXPECT_TRUE(decode(datagram(Kind::reset, {})));
  EXPECT_TRUE(decode(datagram(Kind::close, {})));
  EXPECT_TRUE(decode(datagram(Kind::probe, {})));
  EXPECT_TRUE(decode(datagram(Kind::probe, std::vector<std::byte>(65'000 - 48))));
  EXPECT_TRUE(decode(datagram(Kind::probe_answer, {})));
}

TEST(Segment, EachFaultHasItsReason) {
  const std::vector<std::byte> good = datagram(Kind::data, one_record(16));
  for (std::size_t size = 0; size < kSegmentHeaderBytes; ++size) {
    EXPECT_EQ(reason({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}), DropReason::too_short);
  }
  EXPECT_EQ(reason(with_byte(good, 0, 1)), DropReason::wrong_version);
  EXPECT_EQ(reason(with_byte(good, 1, 0)), DropReason::wrong_kind);
  EXPECT_EQ(reason(with_byte(good, 1, 14)), DropReason::wrong_kind);
  EXPECT_EQ(reason(datagram(Kind::rekey, {})), DropReason::reserved_not_zero) << "it is never in the clear";
  EXPECT_EQ(reason({good.begin(), good.end() - 1}), DropReason::wrong_checksum);
  EXPECT_EQ(reason(with_byte(good, 2, 0x40)), DropReason::reserved_not_zero);
  EXPECT_EQ(reason(datagram(Kind::data, one_record(0), 0)), DropReason::bad_token);
  EXPECT_EQ(reason(datagram(Kind::hello_retry, std::vector<std::byte>(kRetryBytes), 0)), DropReason::bad_token);
  EXPECT_EQ(reason(datagram(Kind::hello_retry, {})), DropReason::wrong_length);
  EXPECT_EQ(reason(datagram(Kind::data, {})), DropReason::wrong_length);
  EXPECT_EQ(reason(datagram(Kind::ack, std::vector<std::byte>(64 * 8))), DropReason::wrong_length);
  EXPECT_EQ(reason(datagram(Kind::ack, std::vector<std::byte>(7))), DropReason::wrong_length);
  EXPECT_EQ(reason(datagram(Kind::reset, std::vector<std::byte>(8))), DropReason::wrong_length);
  EXPECT_EQ(reason(datagram(Kind::data, std::vector<std::byte>(48))), DropReason::bad_record);
  EXPECT_EQ(reason(datagram(Kind::hello, std::vector<std::byte>(48), 0)), DropReason::bad_hello);
}

TEST(Segment, EveryFlippedBitIsNoticed) {
  const std::vector<std::byte> good = datagram(Kind::data, one_record(16));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::vector<std::byte> bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    // A change that makes it look sealed is detected by its tag.
    const auto frame = decode(bytes);
    EXPECT_TRUE(!frame || frame->is_sealed()) << "bit " << bit;
    EXPECT_EQ(frame.has_value(), bit == 8 * 2 + 7) << "bit " << bit;
  }
}

/// The datagram as sent when sealed; its "ciphertext" is the argument.
std::vector<std::byte> sealed(Kind kind, std::size_t payload_bytes, std::uint8_t epoch = 1) {
  std::vector<std::byte> bytes(kSegmentHeaderBytes + payload_bytes + kTagBytes, std::byte{0xee});
  Header header;
  header.kind = kind;
  header.flags = Flags::kAsks;
  header.token = 7;
  encode(header, bytes.data());
  mark_sealed(bytes.data(), epoch, 0x89abcdef);
  return bytes;
}

TEST(SealedSegment, ShowsItsEpochAndNumberAndNothingInside) {
  const std::vector<std::byte> bytes = sealed(Kind::data, kRecordBytes, 6);
  const auto frame = decode(bytes);
  ASSERT_TRUE(frame);
  EXPECT_TRUE(frame->is_sealed());
  EXPECT_EQ(epoch_of(frame->header), 2);
  EXPECT_EQ(frame->header.flags & Flags::kAll, Flags::kAsks);
  EXPECT_EQ(frame->payload.size(), kRecordBytes + kTagBytes);
  EXPECT_EQ(header_bytes(*frame).data(), bytes.data());
  EXPECT_EQ(number_of(header_bytes(*frame)), 0x89abcdefU);
  EXPECT_EQ(check_payload(Kind::data, frame->payload.first(kRecordBytes)), DropReason::bad_record);
  EXPECT_EQ(check_payload(Kind::data, one_record(8)), std::nullopt);
}

TEST(SealedSegment, EachFaultHasItsReason) {
  for (const Kind kind : {Kind::ack, Kind::close, Kind::probe, Kind::probe_answer, Kind::rekey, Kind::rekey_answer})
    EXPECT_TRUE(decode(sealed(kind, 0)));
  for (const Kind kind : {Kind::reset, Kind::hello_retry, Kind::hello_refused})
    EXPECT_EQ(reason(sealed(kind, 8)), DropReason::reserved_not_zero);
  EXPECT_EQ(reason(sealed(Kind::ack, 7)), DropReason::wrong_length);
  EXPECT_EQ(reason(sealed(Kind::data, kRecordBytes - 1)), DropReason::wrong_length);
  EXPECT_EQ(reason(sealed(Kind::rekey, kSealedHandshakeMost + 1)), DropReason::wrong_length);
  std::vector<std::byte> other = sealed(Kind::ack, 0);
  for (std::size_t i = 0; i < kTagBytes; ++i) {
    other.pop_back();
    EXPECT_EQ(reason(other), DropReason::wrong_length);
  }
  other = sealed(Kind::ack, 8);
  other[2] = std::byte{0x20};  // an epoch, but not sealed
  add_checksum(other, {});
  EXPECT_EQ(reason(other), DropReason::reserved_not_zero);
  other = sealed(Kind::ack, 8);
  store(other.data(), 8, std::uint64_t{0});
  EXPECT_EQ(reason(other), DropReason::bad_token);
}

TEST(SealedSegment, AHelloKeepsItsChecksum) {
  const auto sealed_hello = [](std::size_t size, unsigned flags) {
    std::vector<std::byte> bytes(kSegmentHeaderBytes + size, std::byte{3});
    Header header;
    header.kind = Kind::hello;
    header.flags = static_cast<std::uint8_t>(flags);
    encode(header, bytes.data());
    if (size >= kSealedHelloBytes) encode(ReturnAddress{.slot = 9, .token = 8}, bytes.data() + kSegmentHeaderBytes);
    add_checksum(bytes, {});
    return bytes;
  };
  std::vector<std::byte> hello = sealed_hello(100, Flags::kSealed);
  ASSERT_TRUE(decode(hello));
  EXPECT_EQ(read_return_address(decode(hello)->payload, true).slot, 9U);
  EXPECT_EQ(read_return_address(decode(hello)->payload, true).token, 8U);
  hello.back() ^= std::byte{1};
  EXPECT_EQ(reason(hello), DropReason::wrong_checksum);
  EXPECT_EQ(reason(sealed_hello(100, Flags::kSealed | Flags::kEpoch)), DropReason::reserved_not_zero);
  EXPECT_EQ(reason(sealed_hello(kSealedHelloBytes, Flags::kSealed)), DropReason::wrong_length);
  EXPECT_EQ(reason(sealed_hello(kSealedHandshakeMost + 1, Flags::kSealed)), DropReason::wrong_length);
  EXPECT_EQ(read_return_address(valid_hello(), false).token, 10U);
}

TEST(SealedSegment, WhatAHelloHoldsInsideSurvives) {
  SealedInner inner{.hello = read_hello(valid_hello()), .session = 0x1122334455667788};
  std::vector<std::byte> bytes(kSealedInnerBytes);
  encode(inner, bytes.data());
  EXPECT_EQ(read_sealed_inner(bytes).hello, inner.hello);
  EXPECT_EQ(read_sealed_inner(bytes).session, inner.session);
}

TEST(Segment, AnyBytesAreAFrameOrAReason) {
  std::mt19937_64 random(1);
  std::vector<std::byte> bytes;
  for (int i = 0; i < 200'000; ++i) {
    bytes.resize(random() % 300);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (bytes.size() >= kSegmentHeaderBytes && i % 2 == 0) {  // get past the first checks
      store(bytes.data(), 0, kVersion);
      store(bytes.data(), 1, static_cast<std::uint8_t>(1 + random() % 13));
      store(bytes.data(), 2, std::uint16_t{0});
      if (bytes.size() > kSegmentHeaderBytes) bytes[kSegmentHeaderBytes] = static_cast<std::byte>(1 + random() % 2);
      add_checksum(bytes, {});
    }
    const auto frame = decode(bytes);
    if (!frame) {
      EXPECT_LT(static_cast<std::size_t>(frame.error()), kDropReasons);
    } else if (frame->header.kind == Kind::data) {
      for (RecordReader reader(frame->payload); !reader.is_empty();) reader.next();
    }
  }
}

TEST(Hello, SurvivesAndImpossibleOnesAreRefused) {
  const std::vector<std::byte> payload = valid_hello();
  const Hello hello = read_hello(payload);
  std::vector<std::byte> again(kHelloBytes);
  encode(hello, again.data());
  EXPECT_EQ(again, payload);
  EXPECT_TRUE(is_possible(hello));
  const auto with = [&](auto change) {
    Hello changed = hello;
    change(changed);
    return is_possible(changed);
  };
  EXPECT_FALSE(with([](Hello& h) { h.epoch = 0; }));
  EXPECT_FALSE(with([](Hello& h) { h.token = 0; }));
  EXPECT_FALSE(with([](Hello& h) { h.window_bytes = 1199; }));
  EXPECT_FALSE(with([](Hello& h) { h.window_bytes = ~0ULL; }));
  EXPECT_FALSE(with([](Hello& h) { h.datagram_size_max = 1199; }));
  EXPECT_FALSE(with([](Hello& h) { h.window_segments = 0; }));
  EXPECT_FALSE(with([](Hello& h) { h.window_segments = ~0U; }));
  EXPECT_FALSE(with([](Hello& h) { h.reassembly_slots = 0; }));
  EXPECT_FALSE(with([](Hello& h) { h.ack_after.value = ~0U; }));
  EXPECT_FALSE(with([](Hello& h) { h.slot = kSlotsMost; }));
}

TEST(Hello, ARetryCarriesItsCookieAndIsShorterThanAHello) {
  std::vector<std::byte> payload(kRetryBytes);
  encode_retry(0x0123456789abcdef, payload.data());
  EXPECT_EQ(read_retry(payload), 0x0123456789abcdefU);
  EXPECT_LT(payload.size(), valid_hello().size());
}

TEST(Ticks, WrapAndMeasureBothWays) {
  EXPECT_EQ(elapsed({0xfffffff0}, {0x10}), base::Duration(0x20 * 64));
  EXPECT_EQ(elapsed({0x10}, {0xfffffff0}), base::Duration(-0x20 * 64));
  EXPECT_EQ(to_ticks(base::Duration(-5)).value, 0U);
  EXPECT_EQ(to_duration(to_ticks(base::Duration(6400))), base::Duration(6400));
}

TEST(Sequence, DistanceWraps) {
  EXPECT_EQ(distance(Sequence{0xffffffff}, Sequence{0}), 1);
  EXPECT_EQ(distance(Sequence{0}, Sequence{0xffffffff}), -1);
  EXPECT_EQ((Sequence{0xfffffffe} + 3).value, 1U);
}

}  // namespace
}  // namespace fairlead::wire
