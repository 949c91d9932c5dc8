#include "engine/awaited.hpp"

#include "engine/message_context_for_tests.hpp"

namespace fairlead::engine {
namespace {

using namespace std::chrono_literals;

class AwaitedTest : public MessageContextTest {
 protected:
  std::uint32_t add(link::PeerHandle peer, OperationKind kind = OperationKind::put) {
    const std::uint32_t slot = context_.operations.make(kind, port_, 1);
    Operation& operation = context_.operations[slot];
    operation.peer = peer;
    operation.is_link_pending = operation.is_answer_pending = true;
    awaited_.add(slot, now_);
    return slot;
  }

  const link::PeerHandle peer_{3, 1}, other_{4, 1}, local_{shm::Transport::kFirstSlot, 1};
  Awaited awaited_{context_};
};

TEST_F(AwaitedTest, AnOperationIsOverWhenBothEndsHaveCome) {
  const std::uint32_t slot = add(peer_);
  EXPECT_FALSE(awaited_.is_over(slot));
  context_.operations[slot].is_link_pending = false;
  EXPECT_FALSE(awaited_.is_over(slot));
  EXPECT_TRUE(awaited_.has(peer_.slot));
  context_.operations[slot].is_answer_pending = false;
  EXPECT_TRUE(awaited_.is_over(slot));
  EXPECT_FALSE(awaited_.has(peer_.slot));
}

TEST_F(AwaitedTest, WhatWaitsForALostPeerIsOverAndNothingElse) {
  const std::uint32_t slot = add(peer_), other = add(other_);
  ASSERT_EQ(awaited_.take_lost(peer_, Status::silent), slot);
  EXPECT_EQ(context_.operations[slot].status, Status::silent);
  EXPECT_TRUE(awaited_.is_over(slot));
  EXPECT_EQ(awaited_.take_lost(peer_, Status::silent), Operations::kNone);
  EXPECT_FALSE(awaited_.is_over(other));
}

TEST_F(AwaitedTest, PeersOfTheNetworkAreAskedWhetherTheyAreThere) {
  add(local_);
  EXPECT_EQ(awaited_.next_deadline(), base::kNever) << "the end of a process is known";
  add(peer_);
  EXPECT_GT(awaited_.next_deadline(), now_);
  EXPECT_LT(awaited_.next_deadline(), now_ + context_.give_up_after());
}

}  // namespace
}  // namespace fairlead::engine
