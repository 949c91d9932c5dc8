#include "qp/reorder_buffer.hpp"

#include "qp/parts_for_tests.hpp"

namespace fairlead::qp {
namespace {

class EarlyRequests : public testing::Test {
 protected:
  bool hold(std::uint32_t sequence, std::size_t size = 8) {
    link::Delivery delivery{.peer = {},
                            .envelope = {.operation = wire::Operation::pair_send,
                                         .key = wire::encode(wire::RequestKey{.sequence = {sequence}})},
                            .size = size,
                            .bytes = std::span(bytes_).first(size)};
    return buffer_.hold(pair_, delivery);
  }
  std::vector<std::uint32_t> order() {
    std::vector<std::uint32_t> all;
    for (std::uint32_t at = pair_.early.first; at != ReorderBuffer::kNone; at = buffer_[at].next)
      all.push_back(buffer_[at].sequence.value);
    buffer_.check(pair_);
    buffer_.check_sum();
    return all;
  }

  PartsForTests parts_;
  QueuePair& pair_ = *parts_.pair;
  ReorderBuffer& buffer_ = parts_.arrivals;
  std::array<std::byte, 2048> bytes_{};
};

TEST_F(EarlyRequests, WaitInTheOrderOfTheirSequencesAcrossTheWrap) {
  for (const std::uint32_t sequence : {3U, 0xFFFF'FFFFU, 1U, 0xFFFF'FFFEU}) EXPECT_TRUE(hold(sequence));
  EXPECT_FALSE(hold(1)) << "it waits already";
  EXPECT_EQ(parts_.shared.counters.duplicates, 1u);
  EXPECT_EQ(order(), (std::vector<std::uint32_t>{0xFFFF'FFFE, 0xFFFF'FFFF, 1, 3}));
  const std::uint32_t middle = buffer_[pair_.early.first].next;
  buffer_.unlink(pair_, middle);
  buffer_.drop(middle);
  EXPECT_EQ(order(), (std::vector<std::uint32_t>{0xFFFF'FFFE, 1, 3}));
  buffer_.drop_all(pair_);
  EXPECT_TRUE(order().empty());
}

TEST_F(EarlyRequests, TakeAQuarterOfTheRoomAndTheFirstThatFindsNoneIsNoted) {
  EXPECT_TRUE(hold(5, 1000));
  EXPECT_FALSE(hold(8, 1000));
  EXPECT_FALSE(hold(7, 1000));
  EXPECT_FALSE(hold(9, 1000));
  EXPECT_TRUE(pair_.early.has_dropped);
  EXPECT_EQ(pair_.early.dropped_first, wire::RequestSequence{7});
  EXPECT_EQ(parts_.shared.counters.refused_no_room, 3u);
  EXPECT_EQ(parts_.shared.counters.held_bytes_most, 1000u);
  EXPECT_EQ(order(), std::vector<std::uint32_t>{5});
  buffer_.drop_all(pair_);
  EXPECT_TRUE(hold(5, 1000)) << "the room is free again";
}

}  // namespace
}  // namespace fairlead::qp
