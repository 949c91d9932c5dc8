// A queue pair that is held for a handover takes back long requests that the link has not sent in full. So the engine
// comes to rest after about one round trip, however much is queued.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <vector>

#include "engine/handover.hpp"
#include "qp/pair_world_for_tests.hpp"

namespace fairlead::qp {
namespace {

class Recall : public testing::Test {
 protected:
  Recall() : world_(1, {}) {
    near_end_ = world_.open(0, verbs::QpType::rc);
    far_end_ = world_.open(1, verbs::QpType::rc);
    world_.connect(0, near_end_, far_end_, 100, 200);
    world_.connect(1, far_end_, near_end_, 200, 100);
    std::iota(reinterpret_cast<unsigned char*>(near().memory.data()),
              reinterpret_cast<unsigned char*>(near().memory.data() + near().memory.size()), 0);
    post(1, 8);  // opens the session
    run();
    EXPECT_EQ(near().completions().size(), 1u);
  }
  PairEngine& near() { return world_.hosts[0]; }
  PairEngine& far() { return world_.hosts[1]; }
  engine::Handover handover() { return engine::Handover(*near().engine); }
  /// Posts writes of adjacent pieces of the memory.
  void post(int count, std::uint32_t bytes) {
    for (int i = 0; i < count; ++i) {
      const std::size_t at = static_cast<std::size_t>(i) * bytes;
      const verbs::Sge sge = near().sge(at, bytes);
      verbs::SendRequest write{.id = static_cast<std::uint64_t>(i), .opcode = verbs::SendOpcode::write};
      write.sges = {&sge, 1};
      write.remote_addr = far().address(at);
      write.rkey = far().key;
      write.flags = verbs::send_flags::signaled;
      std::size_t taken = 0;
      ASSERT_EQ(near().pairs().post_send(near_end_.handle, {&write, 1}, taken, world_.now), 0);
    }
  }
  void run() { world_.run_until(world_.now + 1s); }
  /// Holds the near engine, and returns whether it comes to rest.
  bool rests() {
    handover().hold_answers(true);
    for (int step = 0; step < 10'000 && !handover().is_still(); ++step) world_.step(world_.now + 10ms);
    return handover().is_still();
  }
  void expect_all(int count, std::uint32_t bytes) {
    run();
    const auto done = near().completions();
    ASSERT_EQ(done.size(), static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < done.size(); ++i) {
      EXPECT_EQ(done[i].status, verbs::WcStatus::success);
      EXPECT_EQ(done[i].wr_id, i);
    }
    EXPECT_EQ(std::memcmp(near().memory.data(), far().memory.data(), static_cast<std::size_t>(count) * bytes), 0);
    near().engine->check();
    far().engine->check();
  }

  PairWorld world_;
  PairWorld::End near_end_, far_end_;
};

TEST_F(Recall, AQueueOfLongWritesIsNotWaitedFor) {
  post(60, 16384);
  ASSERT_TRUE(rests());
  EXPECT_LT(near().completions().size(), 30u) << "most of them wait for the next program";
  EXPECT_GT(near().pairs().counters().requests_repeated, 30u);
}

TEST_F(Recall, EachIsCarriedOutOnceInOrderAfterwards) {
  post(60, 16384);
  handover().hold_answers(true);
  for (int step = 0; step < 10'000 && !handover().is_still(); ++step) world_.step(world_.now + 10ms);
  handover().hold_answers(false);
  expect_all(60, 16384);
}

TEST_F(Recall, AWriteThatWasSentInPartIsSentAgain) {
  post(1, 1 << 20);
  world_.step(world_.now + 10ms);
  ASSERT_TRUE(rests());
  EXPECT_TRUE(near().completions().empty());
  EXPECT_EQ(near().pairs().counters().requests_repeated, 1u);
  handover().hold_answers(false);
  expect_all(1, 1 << 20);
}

TEST_F(Recall, AnAcknowledgementThatAWriteCarriedIsSentAgain) {
  const verbs::Sge sge = far().sge(0, 8);
  const std::size_t at = 900'000;
  const verbs::SendRequest write{.sges = {&sge, 1},
                                 .opcode = verbs::SendOpcode::write,
                                 .flags = verbs::send_flags::signaled,
                                 .rkey = near().key,
                                 .remote_addr = near().address(at)};
  near().memory[at] = std::byte{99};
  std::size_t taken = 0;
  ASSERT_EQ(far().pairs().post_send(far_end_.handle, {&write, 1}, taken, world_.now), 0);
  for (int step = 0; step < 1000 && near().memory[at] == std::byte{99}; ++step) world_.step(world_.now + 10ms);
  ASSERT_EQ(near().memory[at], far().memory[0]);
  const std::uint64_t before = near().pairs().counters().answers_sent;
  post(1, 800'000);
  ASSERT_EQ(near().pairs().counters().answers_sent, before) << "the write carries it";
  ASSERT_TRUE(rests());
  EXPECT_EQ(near().pairs().counters().requests_repeated, 1u);
  EXPECT_EQ(near().pairs().counters().answers_sent, before + 1);
}

// The outcomes of the first submissions come when the requests have been submitted again.
TEST_F(Recall, TheHandoverIsGivenUpAtOnce) {
  post(60, 16384);
  handover().hold_answers(true);
  handover().hold_answers(false);
  expect_all(60, 16384);
}

}  // namespace
}  // namespace fairlead::qp
