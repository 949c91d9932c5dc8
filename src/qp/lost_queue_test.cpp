// XRC: a shared receive queue is closed while a message that has taken a receive from it is still arriving.

#include <algorithm>

#include "qp/pair_world_for_tests.hpp"

namespace fairlead::qp {
namespace {

using verbs::QpState;
using verbs::WcStatus;

constexpr std::uint32_t kXrcDomain = 7, kLongMessage = 1 << 19;

/// Two initiators on host 0, each with a target on host 1, and two shared receive queues of these targets.
class LostQueue : public testing::Test {
 protected:
  struct Road {
    PairWorld::End initiator, target;
  };

  LostQueue() {
    for (ReceiveQueueHandle& each : queues_)
      EXPECT_EQ(
          target().open_receive_queue(
              {.depth = 4, .sges = 1, .domain = 1, .xrc_domain = kXrcDomain, .stream = world_.hosts[1].stream}, each),
          Status::ok);
    for (Road& each : roads_) {
      each = {open(0, PairEnd::initiator), open(1, PairEnd::target)};
      world_.connect(0, each.initiator, each.target, 100, 500);
      world_.connect(1, each.target, each.initiator, 500, 100);
    }
  }
  QueuePairs& target() { return world_.hosts[1].pairs(); }
  PairWorld::End open(std::size_t index, PairEnd end) {
    PairEngine& host = world_.hosts[index];
    const bool is_target = end == PairEnd::target;
    PairWorld::End opened;
    EXPECT_EQ(host.pairs().open_pair({.capacity = {.max_send_wr = 4, .max_send_sge = 1},
                                      .domain = 1,
                                      .end = end,
                                      .xrc_domain = is_target ? kXrcDomain : 0,
                                      .send_stream = is_target ? nullptr : host.stream,
                                      .shared_receives = {},
                                      .events = host.notices.get()},
                                     opened.handle, opened.number),
              Status::ok);
    return opened;
  }
  void receive(std::size_t queue, std::uint64_t id) {
    const verbs::Sge sge = world_.hosts[1].sge(0, kLongMessage);
    const verbs::ReceiveRequest request{.id = id, .sges = {&sge, 1}};
    std::size_t taken = 0;
    ASSERT_EQ(target().post_to_receive_queue(queues_[queue], {&request, 1}, taken), 0);
  }
  void send(const Road& road, std::size_t queue, std::uint32_t size, std::uint64_t id) {
    const verbs::Sge sge = world_.hosts[0].sge(0, size);
    const verbs::SendRequest request{.id = id,
                                     .sges = {&sge, 1},
                                     .flags = verbs::send_flags::signaled,
                                     .remote_srqn = target().receive_queue_facts(queues_[queue]).xrc_number};
    std::size_t taken = 0;
    ASSERT_EQ(world_.hosts[0].pairs().post_send(road.initiator.handle, {&request, 1}, taken, world_.now), 0);
  }
  /// Makes steps until the message has taken its receive, long before all of it has arrived.
  void run_until_taken(std::size_t queue) {
    for (int i = 0; i < 10'000 && target().receive_queue_facts(queues_[queue]).posted != 0; ++i)
      world_.step(world_.now + 1ms);
    ASSERT_EQ(target().receive_queue_facts(queues_[queue]).posted, 0u);
    ASSERT_TRUE(world_.hosts[1].completions().empty());
  }
  QpState state_of(const PairWorld::End& its_target) { return target().pair_facts(its_target.handle).attributes.state; }

  PairWorld world_{1, {}};
  std::array<ReceiveQueueHandle, 2> queues_;
  std::array<Road, 2> roads_;
};

TEST_F(LostQueue, EndsThePairOfItsMessageWithThatCauseAndNoOther) {
  receive(0, 10);
  receive(1, 20);
  send(roads_[0], 0, kLongMessage, 1);
  run_until_taken(0);
  ASSERT_EQ(target().close_receive_queue(queues_[0]), Status::ok);
  send(roads_[1], 1, 100, 2);
  world_.run_until(world_.now + 50ms);
  const auto sent = world_.hosts[0].completions();
  ASSERT_EQ(sent.size(), 2u);
  const auto lost = std::ranges::find(sent, 1u, &verbs::WorkCompletion::wr_id);
  const auto arrived = std::ranges::find(sent, 2u, &verbs::WorkCompletion::wr_id);
  EXPECT_EQ(lost->status, WcStatus::rem_inv_req_err) << "its sender hears why, and need not try again";
  EXPECT_EQ(static_cast<verbs::Cause>(lost->vendor_err), verbs::Cause::no_such_shared_queue);
  EXPECT_EQ(arrived->status, WcStatus::success);
  const auto received = world_.hosts[1].completions();
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[0].wr_id, 10u);
  EXPECT_EQ(received[0].status, WcStatus::wr_flush_err);
  EXPECT_EQ(received[1].wr_id, 20u);
  EXPECT_EQ(received[1].status, WcStatus::success);
  EXPECT_EQ(state_of(roads_[0].target), QpState::err);
  EXPECT_EQ(state_of(roads_[1].target), QpState::rts);
}

// The sender has ended, so no answer is due and the target stays usable.
TEST_F(LostQueue, IsNothingToATargetWhoseSenderHasGone) {
  receive(0, 10);
  send(roads_[0], 0, kLongMessage, 1);
  run_until_taken(0);
  world_.end(0, true);
  world_.run_until(world_.now + 100ms);
  ASSERT_EQ(target().close_receive_queue(queues_[0]), Status::ok);
  EXPECT_EQ(state_of(roads_[0].target), QpState::rts);
  const auto received = world_.hosts[1].completions();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].wr_id, 10u);
  EXPECT_EQ(received[0].status, WcStatus::wr_flush_err);
}

}  // namespace
}  // namespace fairlead::qp
