// Completion queues: room, order, overruns, notification.

#include <poll.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "base/crowded_processor_for_tests.hpp"
#include "base/slowness_for_tests.hpp"
#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

bool is_readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

TEST(CompletionQueue, IsMadeWithinItsLimitsAndNamesWhatIsWrong) {
  Side side(1, Road::self);
  const std::uint32_t most = side.context.limits().max_cqe;
  const auto create = [&](std::uint32_t capacity, std::uint32_t vector) {
    return CompletionQueue::create(side.context, {.capacity = capacity, .comp_vector = vector});
  };
  EXPECT_EQ(create(0, 0).error().system_errno, EINVAL);
  EXPECT_EQ(create(most + 1, 0).error().system_errno, EINVAL);
  EXPECT_EQ(create(1, side.context.limits().comp_vectors).error().system_errno, EINVAL);
  auto queue = create(5, 0);
  ASSERT_TRUE(queue);
  EXPECT_GE(queue->capacity(), 5u);
  EXPECT_TRUE(queue->resize(100));
  EXPECT_GE(queue->capacity(), 100u);
  EXPECT_FALSE(queue->resize(0));
  EXPECT_FALSE(queue->resize(most + 1));
  EXPECT_EQ(queue->request_notify(false), EINVAL);  // no channel
  EXPECT_TRUE(queue->destroy());
  EXPECT_FALSE(queue->destroy());
}

#ifndef FAIRLEAD_IS_SANITIZED  // a sanitizer makes a poll take longer than IdlePolls::kPollMost
TEST(CompletionQueue, IsPolledInVainWithSleepsBesideWhoComputes) {
  Side side(1, Road::self);
  auto queue = CompletionQueue::create(side.context, {.capacity = 5});
  WorkCompletion none;
  const base::CrowdedProcessor crowded;
  EXPECT_TRUE(crowded.makes_sleep([&] { EXPECT_EQ(queue->poll({&none, 1}), 0); }));
}
#endif

TEST(CompletionQueue, IsBusyWhileAQueuePairFeedsIt) {
  Side side(1, Road::self);
  auto queue = *CompletionQueue::create(side.context, {.capacity = 4});
  auto pair = *QueuePair::create(side.domain, {.send_queue = &side.queue, .receive_queue = &queue, .capacity = {}});
  EXPECT_EQ(queue.destroy().error().system_errno, EBUSY);
  EXPECT_EQ(side.channel.close().error().system_errno, EBUSY);
  EXPECT_EQ(side.domain.deallocate().error().system_errno, EBUSY);
  EXPECT_TRUE(pair.destroy());
  EXPECT_TRUE(queue.destroy());
}

TEST(CompletionQueue, SlotsComeBackWithTheCompletionThatRetiresThem) {
  PairOptions options;
  options.capacity.max_send_wr = 8;
  Connected c(Road::self, options);
  const auto post = [&](std::uint32_t flags) {
    return c.pa.post_send({.id = 1, .sges = {}, .opcode = SendOpcode::write, .flags = flags});
  };
  for (int i = 0; i < 7; ++i) ASSERT_EQ(post(0), 0);
  ASSERT_EQ(post(send_flags::signaled), 0);
  EXPECT_EQ(post(0), ENOMEM);  // completed, but not polled yet
  EXPECT_EQ(c.one_at_a().status, WcStatus::success);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(post(0), 0);
  WorkCompletion none;
  EXPECT_EQ(c.a.queue.poll({&none, 1}), 0);
  EXPECT_EQ(post(send_flags::signaled), ENOMEM);  // full of unsignaled requests, because the owner never polls
}

TEST(CompletionQueue, AChainIsTakenUpToTheFirstThatDoesNotFit) {
  PairOptions options;
  options.capacity.max_send_wr = 4;
  Connected c(Road::self, options);
  const std::array<SendRequest, 6> chain{
      {{.id = 0, .sges = {}, .opcode = SendOpcode::write, .flags = send_flags::signaled},
       {.id = 1, .sges = {}, .opcode = SendOpcode::write},
       {.id = 2, .sges = {}, .opcode = SendOpcode::write},
       {.id = 3, .sges = {}, .opcode = SendOpcode::write},
       {.id = 4, .sges = {}, .opcode = SendOpcode::write},
       {.id = 5, .sges = {}, .opcode = SendOpcode::write}}};
  std::size_t taken = 0;
  EXPECT_EQ(c.pa.post_send(chain, taken), ENOMEM);
  EXPECT_EQ(taken, 4u);
  EXPECT_EQ(c.one_at_a().wr_id, 0u);
}

TEST(CompletionQueue, AnOverrunIsToldOnceAndOldEntriesStay) {
  Side a(1, Road::self);
  auto small = *CompletionQueue::create(a.context, {.capacity = 2, .cookie = 5});
  auto pair = *QueuePair::create(
      a.domain, {.send_queue = &small, .receive_queue = &a.queue, .capacity = {.max_send_wr = 64}, .cookie = 6});
  move_up(pair, attributes_for({}, a.device, pair.number(), 1, 1), QpState::rts);
  const std::uint32_t room = small.capacity();
  for (std::uint32_t i = 0; i < room + 3; ++i) {
    ASSERT_EQ(pair.post_send({.id = i, .sges = {}, .opcode = SendOpcode::write, .flags = send_flags::signaled}), 0);
  }
  EXPECT_EQ(pair.state(), QpState::err);
  const auto events = Connected::events(a);
  EXPECT_EQ(std::ranges::count(events, AsyncEventType::cq_err), 1);
  EXPECT_EQ(std::ranges::count(events, AsyncEventType::qp_fatal), 1);
  std::vector<WorkCompletion> old(room + 3);
  const int count = small.poll(old);
  ASSERT_GE(count, static_cast<int>(room));
  for (int i = 0; i < count; ++i) EXPECT_EQ(old[static_cast<std::size_t>(i)].wr_id, static_cast<std::uint64_t>(i));
  EXPECT_EQ(small.poll(old), -1);
}

// The first request fails and the others are flushed, which is too much for the queue.
TEST(CompletionQueue, AnOverrunByWhatIsFlushedEndsTheQueuePairOnce) {
  Side a(1, Road::self);
  auto small = *CompletionQueue::create(a.context, {.capacity = 2});
  auto pair = *QueuePair::create(
      a.domain, {.type = QpType::uc, .send_queue = &small, .receive_queue = &a.queue, .capacity = {.max_send_wr = 64}});
  move_up(pair, attributes_for({}, a.device, pair.number(), 1, 1), QpState::rts);
  const Sge wrong{a.remote(0), 8, a.region.lkey() + 1};
  std::vector<SendRequest> chain;
  for (std::uint64_t i = 0; i < 60; ++i) {
    chain.push_back({.id = i, .sges = {&wrong, 1}, .opcode = SendOpcode::send, .flags = send_flags::signaled});
  }
  std::size_t taken = 0;
  EXPECT_EQ(pair.post_send(chain, taken), 0);
  EXPECT_EQ(taken, chain.size());
  EXPECT_EQ(pair.state(), QpState::err);
  const auto events = Connected::events(a);
  EXPECT_EQ(std::ranges::count(events, AsyncEventType::cq_err), 1);
  EXPECT_EQ(std::ranges::count(events, AsyncEventType::qp_fatal), 1);
  std::vector<WorkCompletion> old(chain.size());
  const int count = small.poll(old);
  ASSERT_GE(count, 2);
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(old[static_cast<std::size_t>(i)].wr_id, static_cast<std::uint64_t>(i));
    EXPECT_EQ(old[static_cast<std::size_t>(i)].status, i == 0 ? WcStatus::loc_prot_err : WcStatus::wr_flush_err);
  }
}

TEST(CompletionQueue, AnOverrunMayBeIgnored) {
  Side a(1, Road::self);
  auto small = *CompletionQueue::create(a.context, {.capacity = 2, .ignores_overrun = true});
  auto pair =
      *QueuePair::create(a.domain, {.send_queue = &small, .receive_queue = &small, .capacity = {.max_send_wr = 64}});
  move_up(pair, attributes_for({}, a.device, pair.number(), 1, 1), QpState::rts);
  for (std::uint32_t i = 0; i < 20; ++i) {
    ASSERT_EQ(pair.post_send({.id = i, .sges = {}, .opcode = SendOpcode::write, .flags = send_flags::signaled}), 0);
  }
  EXPECT_EQ(pair.state(), QpState::rts);
  EXPECT_TRUE(Connected::events(a).empty());
}

TEST(CompletionQueue, ManyWorkQueuesFeedOneAndEachKeepsItsOrder) {
  Side side(1, Road::self);
  std::vector<QueuePair> pairs;
  constexpr std::uint64_t kPairs = 8, kEach = 20;
  for (std::uint64_t i = 0; i < kPairs; ++i) {
    pairs.push_back(std::move(*make_pair_at(side, QpType::rc, {.max_send_wr = 32})));
    move_up(pairs.back(), attributes_for({}, side.device, pairs.back().number(), 1, 1), QpState::rts);
  }
  for (std::uint64_t n = 0; n < kEach; ++n) {
    for (QueuePair& pair : pairs) {
      ASSERT_EQ(pair.post_send({.id = n, .sges = {}, .opcode = SendOpcode::write, .flags = send_flags::signaled}), 0);
    }
  }
  std::array<std::uint64_t, 0x4000> next{};
  for (const WorkCompletion& one : collect(side, side, kPairs * kEach)) {
    EXPECT_EQ(one.wr_id, next[one.qp_num & 0x3FFF]++);
  }
}

TEST(CompletionQueue, ArmedOnceItTellsOnceOfWhatComesAfter) {
  Connected c(Road::self);
  const int descriptor = c.b.channel.descriptor();
  const Sge to = c.b.sge(0, 100);
  const auto message = [&](bool is_solicited) {
    ASSERT_EQ(c.pb.post_receive({.id = 1, .sges = {&to, 1}}), 0);
    ASSERT_EQ(c.pa.post_send({.id = 1, .sges = {}, .flags = is_solicited ? send_flags::solicited : 0}), 0);
  };
  EXPECT_EQ(c.b.queue.request_notify(false), 0);
  EXPECT_FALSE(is_readable(descriptor));
  message(false);
  message(false);
  ASSERT_TRUE(is_readable(descriptor));
  EXPECT_EQ(*c.b.channel.get_event(), 77u);
  EXPECT_FALSE(is_readable(descriptor));
  c.b.queue.ack_events(1);

  EXPECT_EQ(c.b.queue.request_notify(true), 0);
  message(false);
  EXPECT_FALSE(is_readable(descriptor));
  message(true);
  ASSERT_TRUE(is_readable(descriptor));
  EXPECT_TRUE(c.b.channel.get_event());

  EXPECT_EQ(c.b.queue.request_notify(false), 0);
  EXPECT_EQ(c.b.queue.request_notify(true), 0);  // does not cancel the request for "any"
  message(false);
  ASSERT_TRUE(is_readable(descriptor));
  EXPECT_TRUE(c.b.channel.get_event());

  EXPECT_EQ(c.b.queue.request_notify(true), 0);  // a failure counts as solicited
  ASSERT_EQ(c.pb.post_receive({.id = 9, .sges = {&to, 1}}), 0);
  move(c.pb, {}, QpState::err);
  ASSERT_TRUE(is_readable(descriptor));
  EXPECT_TRUE(c.b.channel.get_event());
  c.b.queue.ack_events(3);
}

// A program may arm after its last poll, and not look again: what came in between is told at once. What it has taken,
// or was told of, is not.
TEST(CompletionQueue, ArmingTellsAtOnceOfWhatCameUnnoticed) {
  Connected c(Road::self);
  const Sge to = c.b.sge(0, 100);
  const auto message = [&](bool is_solicited) {
    ASSERT_EQ(c.pb.post_receive({.id = 1, .sges = {&to, 1}}), 0);
    ASSERT_EQ(c.pa.post_send({.id = 1, .sges = {}, .flags = is_solicited ? send_flags::solicited : 0}), 0);
  };
  const auto is_told = [&](bool of_solicited) {
    EXPECT_EQ(c.b.queue.request_notify(of_solicited), 0);
    if (!is_readable(c.b.channel.descriptor())) return false;
    EXPECT_TRUE(c.b.channel.get_event());
    c.b.queue.ack_events(1);
    return true;
  };
  const auto polls = [&] {
    std::array<WorkCompletion, 8> taken;
    return c.b.queue.poll(taken);
  };
  message(false);
  EXPECT_FALSE(is_told(true)) << "it is not solicited";
  EXPECT_TRUE(is_told(false));
  EXPECT_FALSE(is_told(false)) << "the program was told";
  message(false);
  ASSERT_TRUE(is_readable(c.b.channel.descriptor())) << "it is armed";
  EXPECT_TRUE(c.b.channel.get_event());
  c.b.queue.ack_events(1);
  EXPECT_EQ(polls(), 2);
  message(false);
  EXPECT_EQ(polls(), 1);
  EXPECT_FALSE(is_told(false)) << "it is taken";
  message(true);
  ASSERT_TRUE(is_readable(c.b.channel.descriptor()));
  EXPECT_TRUE(c.b.channel.get_event());
  c.b.queue.ack_events(1);
  message(true);
  EXPECT_TRUE(is_told(true));
}

TEST(CompletionQueue, AnEmptyChannelThatDoesNotBlockSaysAgain) {
  Side side(1, Road::self);
  ::fcntl(side.channel.descriptor(), F_SETFL, O_NONBLOCK);
  EXPECT_EQ(side.channel.get_event().error().system_errno, EAGAIN);
}

// Otherwise a program that waits in poll() would block in get_event().
TEST(CompletionQueue, EventsThatWereNotFetchedGoWithTheQueue) {
  Side side(1, Road::self);
  const int descriptor = side.channel.descriptor();
  const auto complete_on = [&](CompletionQueue& queue) {
    auto pair = *QueuePair::create(side.domain, {.send_queue = &queue, .receive_queue = &queue, .capacity = {}});
    move_up(pair, attributes_for({}, side.device, pair.number(), 1, 1), QpState::rts);
    ASSERT_EQ(queue.request_notify(false), 0);
    ASSERT_EQ(pair.post_send({.id = 1, .sges = {}, .opcode = SendOpcode::write, .flags = send_flags::signaled}), 0);
    ASSERT_TRUE(pair.destroy());
  };
  auto first = *CompletionQueue::create(side.context, {.capacity = 4, .channel = &side.channel, .cookie = 1});
  auto second = *CompletionQueue::create(side.context, {.capacity = 4, .channel = &side.channel, .cookie = 2});
  complete_on(first);
  complete_on(second);
  ASSERT_TRUE(is_readable(descriptor));
  EXPECT_TRUE(first.destroy());
  EXPECT_TRUE(is_readable(descriptor));
  EXPECT_EQ(*side.channel.get_event(), 2u);
  EXPECT_FALSE(is_readable(descriptor));
  second.ack_events(1);

  complete_on(second);
  EXPECT_TRUE(second.destroy());
  EXPECT_FALSE(is_readable(descriptor));
}

TEST(CompletionQueue, AsynchronousEventsGoWithTheirQueuePair) {
  Connected c(Road::self);
  const Sge from = c.a.sge(0, 8);
  const SendRequest refused{.id = 1,
                            .sges = {&from, 1},
                            .opcode = SendOpcode::write,
                            .rkey = c.b.region.rkey() + 1,
                            .remote_addr = c.b.remote(0)};
  ASSERT_EQ(c.pa.post_send(refused), 0);
  ASSERT_TRUE(is_readable(c.b.context.async_descriptor()));
  EXPECT_TRUE(c.pb.destroy());
  EXPECT_FALSE(is_readable(c.b.context.async_descriptor()));
}

TEST(CompletionQueue, ASleeperIsWokenThoughNobodyPolls) {
  Connected c(Road::udp);
  const Sge to = c.b.sge(0, 100);
  ASSERT_EQ(c.pb.post_receive({.id = 1, .sges = {&to, 1}}), 0);
  ASSERT_EQ(c.b.queue.request_notify(false), 0);
  ASSERT_EQ(c.pa.post_send({.id = 1, .sges = {}}), 0);
  EXPECT_EQ(*c.b.channel.get_event(), 77u);  // only the engines' threads work here
  c.b.queue.ack_events(1);
  EXPECT_EQ(c.one_at_b().status, WcStatus::success);
}

TEST(CompletionQueue, CallsWhoWantsToBeCalled) {
  Side a(1, Road::udp), b(2, Road::udp);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::uint64_t> received;
  CompletionQueue* called = nullptr;
  int calls = 0;
  const auto on_event = [&] {
    const std::scoped_lock lock(mutex);
    ++calls;
    EXPECT_EQ(called->destroy().error().system_errno, EBUSY);
    EXPECT_EQ(called->request_notify(false), 0);
    std::array<WorkCompletion, 4> some;
    for (int count = called->poll(some); count > 0; count = called->poll(some)) {
      for (const auto& one : std::span(some).first(static_cast<std::size_t>(count))) received.push_back(one.wr_id);
    }
    changed.notify_all();
  };
  EXPECT_EQ(CompletionQueue::create(b.context, {.channel = &b.channel, .on_event = on_event}).error().system_errno,
            EINVAL);
  auto queue = *CompletionQueue::create(b.context, {.capacity = 64, .on_event = on_event});
  called = &queue;
  auto pa = *make_pair_at(a, QpType::rc, {.max_send_wr = 16});
  auto pb =
      *QueuePair::create(b.domain, {.send_queue = &queue, .receive_queue = &queue, .capacity = {.max_recv_wr = 16}});
  move_up(pa, attributes_for({}, b.device, pb.number(), 1, 1), QpState::rts);
  move_up(pb, attributes_for({}, a.device, pa.number(), 1, 1), QpState::rts);
  ASSERT_EQ(queue.request_notify(false), 0);
  constexpr std::uint64_t kMessages = 10;
  const Sge to = b.sge(0, 10);
  for (std::uint64_t id = 0; id < kMessages; ++id) ASSERT_EQ(pb.post_receive({.id = id, .sges = {&to, 1}}), 0);
  for (std::uint64_t id = 0; id < kMessages; ++id) {
    ASSERT_EQ(pa.post_send({.id = id, .sges = {}, .flags = send_flags::signaled}), 0);
  }
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [&] { return received.size() == kMessages; }));
    EXPECT_TRUE(std::ranges::is_sorted(received));
    EXPECT_GE(calls, 1);
    EXPECT_LE(calls, static_cast<int>(kMessages));
  }
  EXPECT_TRUE(pb.destroy());
  EXPECT_TRUE(queue.destroy());  // waits for a call in progress
}

TEST(QueuePairs, PostAllOfABatchOrNothing) {
  PairOptions options;
  options.capacity = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1};
  Connected c(Road::self, options);
  const SendRequest good{.id = 1, .sges = {}, .opcode = SendOpcode::write, .flags = send_flags::signaled};
  const std::array<Sge, 2> too_many{};
  SendRequest bad = good;
  bad.sges = too_many;
  EXPECT_EQ(c.pa.post_send_all(std::array{good, good, bad}), EINVAL);
  EXPECT_EQ(c.pa.post_send_all(std::array{good, good, good, good, good}), ENOMEM);
  WorkCompletion none;
  EXPECT_EQ(c.a.queue.poll({&none, 1}), 0);
  EXPECT_EQ(c.pa.post_send_all(std::array{good, good, good, good}), 0);
  EXPECT_EQ(c.at_a(4).size(), 4u);
}

}  // namespace
}  // namespace fairlead::verbs
