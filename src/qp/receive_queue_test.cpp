#include "qp/receive_queue.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <array>

#include <fairlead/verbs/device.hpp>

namespace fairlead::qp {
namespace {

const std::array<verbs::Sge, 2> kTwo{verbs::Sge{1000, 8, 1}, verbs::Sge{2000, 16, 1}};

TEST(ReceiveQueue, GivesBackInOrderAlsoWhenItGrew) {
  ReceiveQueue queue({.depth = 3, .sges = 2});
  std::uint64_t posted = 0, taken = 0;
  for (int round = 0; round < 5; ++round) {
    while (!queue.is_full()) queue.post({.id = posted, .sges = std::span(kTwo).first(posted++ % 2 + 1)});
    const std::uint32_t depth = queue.facts().depth;
    EXPECT_EQ(queue.change(depth - 1, 0), Status::invalid) << "more are posted";
    EXPECT_EQ(queue.change(depth + 2, 0), Status::ok);
    for (int i = 0; i < 2; ++i, ++taken) {
      EXPECT_EQ(room_of(queue.front().sges), taken % 2 == 0 ? 8u : 24u);
      EXPECT_EQ(queue.take().id, taken);
    }
  }
  while (!queue.is_empty()) EXPECT_EQ(queue.take().id, taken++);
  EXPECT_EQ(taken, posted);
}

TEST(ReceiveQueue, TellsOnceThatFewAreLeft) {
  NoticeStream events(base::FileDescriptor(::eventfd(0, EFD_SEMAPHORE)));
  ReceiveQueue queue({.depth = 4, .sges = 1, .limit = 2, .events = &events, .cookie = 5});
  for (std::uint64_t id = 0; id < 4; ++id) queue.post({.id = id});
  queue.take();
  queue.take();
  EXPECT_EQ(events.consume(), nullptr) << "two are not below two";
  queue.take();
  const Notice* notice = events.consume();
  ASSERT_NE(notice, nullptr);
  EXPECT_EQ(notice->kind, std::to_underlying(verbs::AsyncEventType::srq_limit_reached));
  EXPECT_EQ(notice->cookie, 5u);
  queue.take();
  EXPECT_EQ(events.consume(), nullptr);
  EXPECT_EQ(queue.facts().limit, 0u);
}

TEST(ReceiveQueues, EndWhenNobodyUsesThem) {
  ReceiveQueues queues;
  ReceiveQueueHandle shared, own;
  ASSERT_EQ(queues.open({}, shared), Status::ok);
  ASSERT_EQ(queues.open({}, own), Status::ok);
  ++queues[shared.slot].users;
  ++queues[own.slot].users;
  EXPECT_EQ(queues.close(shared), Status::again);
  queues.let_go(shared.slot, false);
  queues.let_go(own.slot, true);
  EXPECT_EQ(queues.find(own), nullptr);
  EXPECT_EQ(queues.close(shared), Status::ok);
  EXPECT_EQ(queues.close(shared), Status::stale);
}

}  // namespace
}  // namespace fairlead::qp
