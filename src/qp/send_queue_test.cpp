#include "qp/send_queue.hpp"

#include <gtest/gtest.h>

#include <array>

namespace fairlead::qp {
namespace {

using verbs::SendOpcode;

class PostedRequests : public testing::Test {
 protected:
  PostedRequests() {
    queue_.reset();
    queue_.begin({0xFFFF'FFFE});
  }
  RequestNumber post(SendOpcode opcode, std::uint32_t flags = 0) {
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(bytes_.data()), 4, 9};
    queue_.post({.id = 7, .sges = {&sge, 1}, .opcode = opcode, .flags = flags}, 4);
    return queue_.tail() - 1;
  }
  SendQueue queue_{{.max_send_wr = 5, .max_send_sge = 2, .max_inline = 8}};
  std::array<std::byte, 4> bytes_{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
};

TEST_F(PostedRequests, AreCopiedWithTheirPiecesOrTheirBytes) {
  const RequestNumber plain = post(SendOpcode::write), inlined = post(SendOpcode::send, verbs::send_flags::inlined);
  bytes_.fill(std::byte{});
  EXPECT_EQ(queue_[plain].id, 7u);
  ASSERT_EQ(queue_.sges_of(plain).size(), 1u);
  EXPECT_EQ(queue_.sges_of(plain)[0].lkey, 9u);
  EXPECT_TRUE(queue_.sges_of(inlined).empty());
  EXPECT_EQ(queue_.inlined_of(inlined)[3], std::byte{4});
  queue_.take_back(plain);
  EXPECT_TRUE(queue_.is_empty());
}

TEST_F(PostedRequests, AreOutFromTheirSendingUntilTheyAreComplete) {
  const RequestNumber send = post(SendOpcode::send), read = post(SendOpcode::read);
  EXPECT_FALSE(queue_.is_out(send));
  queue_.sent_message(queue_[queue_.next()]);
  EXPECT_TRUE(queue_.is_out(send));
  EXPECT_TRUE(queue_.awaits_program());
  queue_.sent_message(queue_[queue_.next()]);
  EXPECT_EQ(queue_.reads_out(), 1u);
  EXPECT_EQ(queue_.sequence_of(read), wire::RequestSequence{0xFFFF'FFFF});
  EXPECT_EQ(queue_.number_of({0xFFFF'FFFF}), read);
  EXPECT_TRUE(queue_.acknowledge(read + 1));
  EXPECT_FALSE(queue_.acknowledge(read)) << "known already";
  EXPECT_TRUE(queue_.is_settled(send));
  EXPECT_FALSE(queue_.is_settled(read)) << "its result has not come";
  queue_.finish_result(queue_[read]);
  EXPECT_TRUE(queue_.is_settled(read));
  EXPECT_EQ(queue_.reads_out(), 0u);
  queue_.retire();
  EXPECT_FALSE(queue_.is_out(send));
  EXPECT_TRUE(queue_.is_out_or_last(send));
  EXPECT_FALSE(queue_.awaits_program());
}

TEST_F(PostedRequests, AreSentAgainFromWhereItGoesBackTo) {
  const RequestNumber first = post(SendOpcode::send), read = post(SendOpcode::read);
  queue_.sent_message(queue_[queue_.next()]);
  queue_.sent_message(queue_[queue_.next()]);
  queue_.note_begun();
  EXPECT_EQ(queue_.go_back(read), 1u);
  EXPECT_EQ(queue_.reads_out(), 0u);
  EXPECT_EQ(queue_.go_back(first), 1u);
  EXPECT_EQ(queue_.next(), first);
  EXPECT_TRUE(queue_.is_any_begun());
  EXPECT_FALSE(queue_.is_any_out());
}

TEST_F(PostedRequests, ThatWeCarryOutTakeNoSequence) {
  post(SendOpcode::write);
  const RequestNumber second = post(SendOpcode::send);
  queue_.carried_out();
  EXPECT_EQ(queue_.sequence_of(second), wire::RequestSequence{0xFFFF'FFFE});
  EXPECT_FALSE(queue_.awaits_program());
}

TEST_F(PostedRequests, AreCheckedForContradictions) {
  post(SendOpcode::send);
  queue_.check(1, 0);
  queue_[queue_.head()].flights = 2;
  EXPECT_DEATH(queue_.check(1, 1), "2 flights of its requests, 1 of all");
}

}  // namespace
}  // namespace fairlead::qp
