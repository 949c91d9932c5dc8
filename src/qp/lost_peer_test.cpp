// A reliable queue pair whose peer's process has ended. When and in which order its requests fail, what ends them
// earlier, and that a new process at the same address does not get them.

#include "qp/pair_world_for_tests.hpp"

namespace fairlead::qp {
namespace {

using verbs::Cause;
using verbs::QpState;
using verbs::QpType;
using verbs::WcStatus;

constexpr std::uint32_t kPsnOfA = 100, kPsnOfB = 500;
constexpr std::uint8_t kRnrLong = 30;
constexpr base::Duration kRnrPause = 327'680us;

class LostPeer : public testing::Test {
 protected:
  /// Connects the queue pairs, with one send each way, so that there is a session.
  void connect(std::uint8_t timeout, std::uint8_t retry_cnt) {
    world_.timeout = timeout;
    world_.retry_cnt = retry_cnt;
    a_ = world_.open(0, QpType::rc);
    b_ = world_.open(1, QpType::rc);
    world_.connect(0, a_, b_, kPsnOfA, kPsnOfB);
    world_.connect(1, b_, a_, kPsnOfB, kPsnOfA);
    receive(0, a_, 900);
    receive(1, b_, 900);
    send(0, a_, 901);
    send(1, b_, 901);
    world_.run_until(world_.now + 10ms);
    ASSERT_EQ(world_.hosts[0].completions().size(), 2u);
    ASSERT_EQ(world_.hosts[1].completions().size(), 2u);
  }
  void send(std::size_t index, const PairWorld::End& end, std::uint64_t id) {
    const verbs::Sge sge = world_.hosts[index].sge(0, 8);
    const verbs::SendRequest request{.id = id, .sges = {&sge, 1}, .flags = verbs::send_flags::signaled};
    std::size_t taken = 0;
    ASSERT_EQ(world_.hosts[index].pairs().post_send(end.handle, {&request, 1}, taken, world_.now), 0);
  }
  void receive(std::size_t index, const PairWorld::End& end, std::uint64_t id) {
    const verbs::Sge sge = world_.hosts[index].sge(4096, 64);
    const verbs::ReceiveRequest request{.id = id, .sges = {&sge, 1}};
    std::size_t taken = 0;
    ASSERT_EQ(world_.hosts[index].pairs().post_receive(end.handle, {&request, 1}, taken), 0);
  }
  QueuePairs& pairs() const { return world_.hosts[0].pairs(); }
  QpState state() const { return pairs().pair_facts(a_.handle).attributes.state; }
  void change(QpState to) {
    verbs::QpAttributes wanted = pairs().pair_facts(a_.handle).attributes;
    const QpState from = wanted.state;
    wanted.state = to;
    ASSERT_EQ(pairs().change_pair(a_.handle, from, wanted, world_.now), Status::ok);
  }
  static base::Duration patience(std::uint8_t timeout, std::uint8_t retry_cnt) {
    return std::chrono::nanoseconds(4096LL << timeout) * (retry_cnt + 1);
  }
  void expect_nothing_before(base::Instant moment) {
    world_.run_until(moment - 1us);
    EXPECT_EQ(world_.hosts[0].completions().size(), 0u);
    EXPECT_GE(state(), QpState::rts);
    EXPECT_LE(state(), QpState::sqd);
  }
  /// The requests must have failed together: the first with the cause, the others flushed.
  void expect_failed(std::vector<std::uint64_t> ids, Cause cause) {
    const auto ends = world_.hosts[0].completions();
    ASSERT_EQ(ends.size(), ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(ends[i].wr_id, ids[i]);
      EXPECT_EQ(ends[i].status, i == 0 ? WcStatus::retry_exc_err : WcStatus::wr_flush_err);
    }
    EXPECT_EQ(static_cast<Cause>(ends[0].vendor_err), cause);
    EXPECT_EQ(state(), QpState::err);
  }
  /// The peer announces its end while two requests are in flight. Returns when they were sent.
  base::Instant lose_two() {
    const base::Instant sent = world_.now;
    send(0, a_, 1);
    send(0, a_, 2);
    world_.end(1, true);
    return sent;
  }

  PairWorld world_{1, {}};
  PairWorld::End a_, b_;
};

TEST_F(LostPeer, RequestsFailWhenTheTimerWouldHaveEndedAndNotBefore) {
  connect(14, 7);
  const base::Instant sent = lose_two();
  expect_nothing_before(sent + patience(14, 7));
  world_.run_until(sent + patience(14, 7));
  expect_failed({1, 2}, Cause::port_unreachable);
}

TEST_F(LostPeer, ShortTimersAreThoseOfAnswers) {
  connect(1, 0);
  const base::Instant sent = lose_two();
  expect_nothing_before(sent + 50ms);
  world_.run_until(sent + 50ms);
  expect_failed({1, 2}, Cause::port_unreachable);
}

// The give-up time is part of the wait: if the time has passed when the loss is detected, there is no further wait.
TEST_F(LostPeer, OfAPeerThatFellSilentTheyFailWhenThatIsKnown) {
  connect(14, 7);
  const base::Instant sent = world_.now;
  send(0, a_, 1);
  world_.end(1, false);
  expect_nothing_before(sent + 4s);
  world_.run_until(sent + 7s);
  expect_failed({1}, Cause::no_ack);
}

TEST_F(LostPeer, OfAPeerThatFellSilentTheyFailWithTheTimerIfThatIsLonger) {
  connect(18, 7);
  const base::Instant sent = world_.now;
  send(0, a_, 1);
  world_.end(1, false);
  expect_nothing_before(sent + patience(18, 7));
  world_.run_until(sent + patience(18, 7));
  expect_failed({1}, Cause::no_ack);
}

TEST_F(LostPeer, WithoutATimeoutTheyFailAtOnce) {
  connect(0, 7);
  lose_two();
  world_.run_until(world_.now + 1ms);
  expect_failed({1, 2}, Cause::port_unreachable);
}

TEST_F(LostPeer, NobodyWaitsLongerThanAMinute) {
  connect(31, 7);
  const base::Instant sent = lose_two();
  expect_nothing_before(sent + 60s);
  world_.run_until(sent + 60s);
  expect_failed({1, 2}, Cause::port_unreachable);
}

TEST_F(LostPeer, WhatIsPostedMeanwhileFailsWithTheRestAndInOrder) {
  connect(14, 7);
  const base::Instant sent = lose_two();
  world_.run_until(sent + 100ms);
  send(0, a_, 3);
  world_.run_until(sent + 200ms);
  send(0, a_, 4);
  expect_nothing_before(sent + patience(14, 7));
  world_.run_until(sent + patience(14, 7));
  expect_failed({1, 2, 3, 4}, Cause::port_unreachable);
}

TEST_F(LostPeer, InTheErrorStateTheyAreFlushedAtOnce) {
  connect(18, 7);
  const base::Instant sent = lose_two();
  world_.run_until(sent + 100ms);
  change(QpState::err);
  const auto ends = world_.hosts[0].completions();
  ASSERT_EQ(ends.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(ends[i].wr_id, i + 1);
    EXPECT_EQ(ends[i].status, WcStatus::wr_flush_err);
  }
  world_.run_until(sent + 20s);
  EXPECT_EQ(world_.hosts[0].completions().size(), 0u);
}

TEST_F(LostPeer, AResetOrACloseNeedNotWait) {
  for (const bool is_close : {false, true}) {
    connect(18, 7);
    const base::Instant sent = lose_two();
    world_.run_until(sent + 100ms);
    if (is_close) {
      pairs().begin_close(a_.handle, world_.now);
    } else {
      change(QpState::reset);
    }
    EXPECT_TRUE(pairs().is_quiet(a_.handle));
    if (is_close) pairs().free_pair(a_.handle);
    world_.run_until(sent + 20s);
    EXPECT_EQ(world_.hosts[0].completions().size(), 0u);
    world_.start(1);
  }
}

TEST_F(LostPeer, AQueueThatIsDrainedWaitsForThem) {
  connect(14, 7);
  const base::Instant sent = lose_two();
  world_.run_until(sent + 100ms);
  change(QpState::sqd);
  send(0, a_, 3);
  EXPECT_TRUE(pairs().pair_facts(a_.handle).attributes.is_sq_draining);
  expect_nothing_before(sent + patience(14, 7));
  world_.run_until(sent + patience(14, 7));
  expect_failed({1, 2, 3}, Cause::port_unreachable);
}

// The receive side of the queue pair is not affected until then.
TEST_F(LostPeer, ReceivesStayUntilThen) {
  connect(14, 7);
  receive(0, a_, 7);
  const base::Instant sent = lose_two();
  expect_nothing_before(sent + patience(14, 7));
  world_.run_until(sent + patience(14, 7));
  const auto ends = world_.hosts[0].completions();
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_EQ(ends[2].wr_id, 7u);
  EXPECT_EQ(ends[2].status, WcStatus::wr_flush_err);
}

// The request has arrived and no receive is posted, so the link reports no further outcome.
TEST_F(LostPeer, ARequestThatWaitsForAReceiverFailsWithTheTimerAfterItsPause) {
  world_.min_rnr_timer = kRnrLong;
  connect(14, 7);
  const base::Instant sent = world_.now;
  send(0, a_, 1);
  world_.run_until(sent + 50ms);
  ASSERT_EQ(world_.hosts[1].pairs().counters().receiver_not_ready, 1u);
  world_.end(1, true);
  const std::uint64_t requests = pairs().counters().requests_sent;
  expect_nothing_before(sent + kRnrPause + patience(14, 7));
  world_.run_until(sent + kRnrPause + patience(14, 7) + 1ms);
  expect_failed({1}, Cause::port_unreachable);
  EXPECT_EQ(pairs().counters().requests_sent, requests);
}

// The only request was not sent, because the address does not exist.
TEST_F(LostPeer, AQueueThatIsDrainedWaitsForWhatCannotBeSent) {
  connect(14, 7);
  verbs::QpAttributes wanted = pairs().pair_facts(a_.handle).attributes;
  wanted.av.dgid = {};
  ASSERT_EQ(pairs().change_pair(a_.handle, QpState::rts, wanted, world_.now), Status::ok);
  const base::Instant sent = world_.now;
  send(0, a_, 1);
  change(QpState::sqd);
  EXPECT_TRUE(pairs().pair_facts(a_.handle).attributes.is_sq_draining);
  expect_nothing_before(sent + patience(14, 7));
  world_.run_until(sent + patience(14, 7));
  expect_failed({1}, Cause::never_heard);
}

TEST_F(LostPeer, WithNothingUnderWayAQueuePairStaysAsItIs) {
  connect(14, 0);
  world_.end(1, true);
  world_.run_until(world_.now + 10s);
  EXPECT_EQ(state(), QpState::rts);
  const base::Instant sent = world_.now;
  send(0, a_, 1);
  expect_nothing_before(sent + patience(14, 0));
}

// The next process has a queue pair with the same number that expects exactly the sequence sent to the earlier one.
class LostPeerAndReturn : public LostPeer, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(, LostPeerAndReturn, testing::Bool(),
                         [](const auto& one) { return one.param ? "OfWhatWaitedForAReceiver" : "OfWhatWasUnderWay"; });

TEST_P(LostPeerAndReturn, TheNextProcessGetsNothing) {
  world_.min_rnr_timer = kRnrLong;
  connect(18, 7);
  const base::Instant sent = world_.now;
  send(0, a_, 1);
  if (GetParam()) world_.run_until(world_.now + 50ms);
  const base::Instant ended = world_.now;
  world_.end(1, true);
  world_.run_until(ended + 50ms);
  world_.start(1);
  const std::uint32_t number = b_.number;
  b_ = world_.open(1, QpType::rc);
  ASSERT_EQ(b_.number, number);
  world_.connect(1, b_, a_, kPsnOfB + 1, kPsnOfA + 1);
  receive(1, b_, 1);
  receive(0, a_, 2);
  send(1, b_, 2);
  send(0, a_, 3);
  world_.run_until(ended + 1s);
  const auto received = world_.hosts[0].completions();
  ASSERT_EQ(received.size(), 1u) << "there is a session with it";
  EXPECT_EQ(received[0].wr_id, 2u);
  const base::Instant due = sent + patience(18, 7) + (GetParam() ? kRnrPause : base::Duration{});
  expect_nothing_before(due);
  world_.run_until(due + 1ms);
  expect_failed({1, 3}, Cause::port_unreachable);
  EXPECT_EQ(world_.hosts[1].pairs().counters().requests_executed, 0u);
}

// A process ends, and the next one at its address is connected before the end of the old session is detected. Requests
// sent in that session have reached no process.
TEST_F(LostPeer, WhatWentIntoTheSessionOfAProcessBeforeIsSentAgain) {
  connect(14, 7);
  world_.end(1, true);
  world_.start(1);
  b_ = world_.open(1, QpType::rc);
  const PairWorld::End next = world_.open(0, QpType::rc);
  world_.connect(0, next, b_, kPsnOfA, kPsnOfB);
  world_.connect(1, b_, next, kPsnOfB, kPsnOfA);
  receive(1, b_, 10);
  receive(1, b_, 11);
  send(0, next, 1);
  send(0, next, 2);
  world_.run_until(world_.now + 100ms);
  for (PairEngine& host : world_.hosts) {
    const auto ends = host.completions();
    ASSERT_EQ(ends.size(), 2u);
    for (const auto& end : ends) EXPECT_EQ(end.status, WcStatus::success);
  }
}

// The next process must not acknowledge requests that were sent to the earlier one.
TEST_F(LostPeer, AnAnswerOfTheNextProcessIsNoneToTheOneBefore) {
  connect(18, 7);
  const base::Instant sent = lose_two();
  world_.run_until(sent + 50ms);
  const auto path = std::move(*world_.network.attach(*base::SocketAddress::from_ip("10.0.0.2", 20480)));
  link::Link next(link::LinkOptions{}, 900, 901);
  const auto peer = *next.peer(world_.hosts[0].engine->address(), 1472, world_.now);
  const wire::Envelope answer{.operation = wire::Operation::pair_answer,
                              .source_port = b_.number,
                              .target_port = a_.number | 1U << 24,  // its first incarnation
                              .key = std::uint64_t{kPsnOfA + 1} << 32};
  ASSERT_EQ(next.submit(peer, {.envelope = answer, .pieces = {}, .size = 0, .cookie = 1}, world_.now), Status::ok);
  link::Train train;
  const std::uint64_t late = pairs().counters().dropped_late_answer;
  for (int pass = 0; pass < 100; ++pass) {
    while (next.next_train(world_.now, path->train_bytes_max(), path->train_datagrams_max(), train)) {
      const path::Train out{.to = train.to,
                            .pieces = std::span<const iovec>(train.pieces, train.piece_count),
                            .datagram_size = train.datagram_size};
      ASSERT_EQ(path->send({&out, 1}, world_.now), 1u);
    }
    world_.run_until(world_.now + 100us);
    std::array<path::Arrival, 16> arrivals;
    const std::size_t count = path->collect(arrivals, world_.now);
    for (const path::Arrival& arrival : std::span(arrivals).first(count))
      next.receive(arrival.from, arrival.bytes, world_.now, 1472);
  }
  EXPECT_EQ(pairs().counters().dropped_late_answer, late + 1);
  expect_nothing_before(sent + patience(18, 7));
  world_.run_until(sent + patience(18, 7));
  expect_failed({1, 2}, Cause::port_unreachable);
}

}  // namespace
}  // namespace fairlead::qp
