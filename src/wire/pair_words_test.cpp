#include "wire/pair_words.hpp"

#include <gtest/gtest.h>

namespace fairlead::wire {
namespace {

TEST(PairWords, APortIsANumberAndTheLowBitsOfAnIncarnation) {
  EXPECT_EQ(encode(PairPort{0x12'3456, 0x9A}), 0x9A12'3456u);
  const PairPort port = decode_pair_port(0x9A12'3456);
  EXPECT_EQ(port.number, 0x12'3456u);
  EXPECT_EQ(port.incarnation, 0x9A);
  EXPECT_EQ(decode_pair_port(~0U).number, PairPort::kNumberMost);
}

TEST(PairWords, AKeyIsASequenceAndARegion) {
  EXPECT_EQ(encode(RequestKey{{0xFFFF'FFFE}, 0x1234'5678}), 0xFFFF'FFFE'1234'5678u);
  const RequestKey key = decode_request_key(0xFFFF'FFFE'1234'5678);
  EXPECT_EQ(key.sequence, RequestSequence{0xFFFF'FFFE});
  EXPECT_EQ(key.rkey, 0x1234'5678u);
}

TEST(PairWords, ASharedQueueIsInFlagsAndStatus) {
  for (const std::uint32_t number : {0U, 1U, 0x1234U, SharedQueue::kNumberMost}) {
    const SharedQueue queue = SharedQueue::of_word(SharedQueue::word_of(number));
    EXPECT_EQ(queue.number(), number);
    EXPECT_EQ(queue.flags & 0xFF, request_flags::shared);
  }
  EXPECT_EQ(SharedQueue::of_word(0).flags, 0) << "none";
  EXPECT_EQ(SharedQueue::of_word(SharedQueue::word_of(0x1'0005)).number(), 0U) << "not that of number 5";
}

}  // namespace
}  // namespace fairlead::wire
