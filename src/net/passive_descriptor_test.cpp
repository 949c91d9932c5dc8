#include "net/passive_descriptor.hpp"

#include <gtest/gtest.h>

#include "wire/buffer_descriptor.hpp"

namespace fairlead::net {
namespace {

PassiveDescriptor sample(QueueKind kind, std::uint64_t size) {
  return {.owner = {base::SocketAddress::from_ip("10.0.0.5", 20480).value(), 34U << 12 | 7},
          .kind = kind,
          .epoch = 5,
          .key = 6,
          .size = size};
}

Status decoded(const BufferDescriptor& bytes, QueueKind kind, std::uint64_t length) {
  const auto passive = decode_descriptor(bytes, kind, length);
  return passive ? Status::ok : passive.error();
}

TEST(PassiveDescriptor, PairsAndSizes) {
  const BufferDescriptor readable = encode_descriptor(sample(QueueKind::passive_bulk_send, 100));
  EXPECT_EQ(decoded(readable, QueueKind::active_bulk_receive, 99), Status::too_big);
  EXPECT_EQ(decoded(readable, QueueKind::active_bulk_receive, 100), Status::ok);
  EXPECT_EQ(decoded(readable, QueueKind::active_bulk_receive, 101), Status::ok);
  EXPECT_EQ(decoded(readable, QueueKind::active_bulk_send, 100), Status::not_permitted);

  const BufferDescriptor writable = encode_descriptor(sample(QueueKind::passive_bulk_receive, 100));
  EXPECT_EQ(decoded(writable, QueueKind::active_bulk_send, 99), Status::ok);
  EXPECT_EQ(decoded(writable, QueueKind::active_bulk_send, 100), Status::ok);
  EXPECT_EQ(decoded(writable, QueueKind::active_bulk_send, 101), Status::too_big);
  EXPECT_EQ(decoded(writable, QueueKind::active_bulk_receive, 100), Status::not_permitted);
}

TEST(PassiveDescriptor, TheFirstFaultInMotrsOrderWins) {
  // Damaged, of the wrong pair and too big: damaged.
  BufferDescriptor bytes = encode_descriptor(sample(QueueKind::passive_bulk_send, 100));
  bytes[16] ^= std::byte{1};
  EXPECT_EQ(decoded(bytes, QueueKind::active_bulk_send, 1), Status::invalid);
  // Of the wrong pair and too big: the pair.
  EXPECT_EQ(decoded(encode_descriptor(sample(QueueKind::passive_bulk_send, 100)), QueueKind::active_bulk_send, 1),
            Status::not_permitted);
  // Too big and without a key: too big.
  PassiveDescriptor keyless = sample(QueueKind::passive_bulk_send, 100);
  keyless.key = 0;
  EXPECT_EQ(decoded(encode_descriptor(keyless), QueueKind::active_bulk_receive, 1), Status::too_big);
  EXPECT_EQ(decoded(encode_descriptor(keyless), QueueKind::active_bulk_receive, 100), Status::invalid);
}

TEST(PassiveDescriptor, OnlyPassiveQueuesHaveOne) {
  for (const QueueKind kind : {QueueKind::message_receive, QueueKind::message_send, QueueKind::active_bulk_receive,
                               QueueKind::active_bulk_send, QueueKind{200}}) {
    const BufferDescriptor bytes = encode_descriptor(sample(kind, 100));
    EXPECT_EQ(decoded(bytes, QueueKind::active_bulk_receive, 100), Status::invalid);
    EXPECT_FALSE(inspect(bytes));
  }
}

TEST(PassiveDescriptor, AnotherLengthIsInvalid) {
  const BufferDescriptor bytes = encode_descriptor(sample(QueueKind::passive_bulk_send, 100));
  const auto shorter = decode_descriptor(std::span(bytes).first(63), QueueKind::active_bulk_receive, 100);
  ASSERT_FALSE(shorter);
  EXPECT_EQ(shorter.error(), Status::invalid);
  EXPECT_FALSE(decode_descriptor({}, QueueKind::active_bulk_receive, 100));
}

TEST(PassiveDescriptor, CanBeInspected) {
  const auto facts = inspect(encode_descriptor(sample(QueueKind::passive_bulk_send, 100)));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->kind, QueueKind::passive_bulk_send);
  EXPECT_EQ(facts->size, 100U);
  EXPECT_EQ(facts->address, "10.0.0.5@udp:20480:34:7");
}

TEST(PassiveDescriptor, AFaultIsExplained) {
  BufferDescriptor bytes = encode_descriptor(sample(QueueKind::passive_bulk_send, 100));
  bytes[3] ^= std::byte{4};
  const auto facts = inspect(bytes);
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().status, Status::invalid);
  EXPECT_NE(facts.error().message.find("checksum"), std::string::npos);
}

}  // namespace
}  // namespace fairlead::net
