// Bundles: several endpoints, moves, sleeping, interrupts, threads, loss.

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <stop_token>
#include <thread>

#include "am/pair_for_tests.hpp"
#include "base/crowded_processor_for_tests.hpp"
#include "base/slowness_for_tests.hpp"

namespace fairlead::am {
namespace {

using namespace std::chrono_literals;

class Bundles : public Pair, public testing::WithParamInterface<std::string> {
 protected:
  std::string path() override { return GetParam(); }
};

TEST_P(Bundles, ServeAllTheirEndpoints) {
  std::vector<Endpoint*> more;
  for (int i = 0; i < 5; ++i) {
    auto added = b.bundle->add_endpoint();
    ASSERT_TRUE(added);
    equip(b, **added);
    more.push_back(*added);
    ASSERT_EQ(a.endpoint->map(static_cast<std::uint32_t>(10 + i), (*added)->name(), kKey), Status::ok);
    ASSERT_EQ(a.endpoint->request(static_cast<std::uint32_t>(10 + i), kEcho, {}), Status::ok);
  }
  ASSERT_TRUE(until([&] { return a.seen.size() == 5; }));
  EXPECT_EQ(b.bundle->free_endpoint(*more[2]), Status::ok);
  EXPECT_EQ(b.bundle->free_endpoint(*a.endpoint), Status::invalid);
  ASSERT_EQ(a.endpoint->request(12, kEcho, {}), Status::ok);
  ASSERT_TRUE(until([&] { return a.returned.size() == 1; }));
  EXPECT_EQ(a.returned[0].refusal, Refusal::bad_endpoint);
}

TEST_P(Bundles, AnEndpointThatMovesKeepsItsNameAndItsMessages) {
  ASSERT_EQ(a.endpoint->request(0, kEcho, {}), Status::ok);
  while (!b.bundle->has_message()) a.bundle->poll(), std::this_thread::yield();
  Bundle other(*b.domain, BundleMode::sequential);
  EXPECT_EQ(other.move_endpoint(*b.endpoint, *b.bundle), Status::invalid);
  ASSERT_EQ(b.bundle->move_endpoint(*b.endpoint, other), Status::ok);
  EXPECT_EQ(&b.endpoint->bundle(), &other);
  b.bundle->poll();
  EXPECT_TRUE(b.seen.empty());
  other.poll();
  EXPECT_EQ(b.seen.size(), 1u);
  ASSERT_EQ(a.endpoint->request(0, kEcho, {}), Status::ok);
  while (b.seen.size() < 2) other.poll();
  ASSERT_TRUE(until([&] { return a.seen.size() == 2; }));
  ASSERT_EQ(other.move_endpoint(*b.endpoint, *b.bundle), Status::ok);
  run_good_requests(10);
}

TEST_P(Bundles, WaitEndsWithAMessageOrTheDeadline) {
  EXPECT_EQ(a.bundle->wait(std::chrono::steady_clock::now() + 10ms), Status::timed_out);
  std::atomic<bool> is_done{false};
  // One wait may return two messages: the next request may arrive while the first is being answered.
  std::thread other([&] {
    while (!is_done) b.bundle->wait(std::chrono::steady_clock::now() + 100ms);
  });
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(a.endpoint->request(0, kEcho, {}), Status::ok);
    ASSERT_EQ(a.bundle->wait(), Status::ok);
  }
  is_done = true;
  other.join();
  EXPECT_EQ(a.seen.size(), 3u);
}

TEST_P(Bundles, WaitEndsWhenAStopIsRequested) {
  const auto waits_with = [&](const std::stop_token& stop) {
    return a.bundle->wait(std::chrono::steady_clock::now() + 60s, stop);
  };
  std::stop_source before;
  before.request_stop();
  EXPECT_EQ(waits_with(before.get_token()), Status::canceled);
  for (int i = 0; i < 10; ++i) {
    std::stop_source stop;
    std::atomic<Status> result{Status::ok};
    std::thread sleeper([&] { result = waits_with(stop.get_token()); });
    std::this_thread::sleep_for(i % 2 * 10ms);  // mostly asleep, or mostly not yet
    stop.request_stop();
    sleeper.join();
    EXPECT_EQ(result.load(), Status::canceled);
  }
  run_good_requests(10);
}

// Detects a sleeper that wakes every 100 ms: each sleep is a voluntary context switch.
TEST_P(Bundles, SleepWithoutWakingWhileNothingIsAwaited) {
  const auto sleeps = [] {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  };
  // A wait that polled ten times a second would sleep about seven times in every attempt. Other causes of sleep (a
  // lock, a page fault) come and go, so the least of several attempts counts.
  constexpr int kTries = 8;
  long least = std::numeric_limits<long>::max();
  for (int tried = 0; tried < kTries && least > 4; ++tried) {
    const long before = sleeps();
    ASSERT_EQ(a.bundle->wait(std::chrono::steady_clock::now() + 700ms), Status::timed_out);
    least = std::min(least, sleeps() - before);
  }
  EXPECT_LE(least, 4);
}

TEST_P(Bundles, TheirDescriptorWakesAForeignLoop) {
  auto second = b.bundle->add_endpoint();
  ASSERT_TRUE(second);
  equip(b, **second);
  ASSERT_EQ(a.endpoint->map(1, (*second)->name(), kKey), Status::ok);
  pollfd look{b.bundle->descriptor(), POLLIN, 0};
  ASSERT_GE(look.fd, 0);
  for (std::uint32_t to = 0; to < 2; ++to) {
    while (!b.bundle->arm()) b.bundle->poll();  // the engine may still have something to say
    ASSERT_EQ(a.endpoint->request(to, kEcho, {}), Status::ok);
    ASSERT_EQ(::poll(&look, 1, 10'000), 1);
    EXPECT_FALSE(b.bundle->arm());
    b.bundle->poll();
    EXPECT_EQ(b.seen.size(), to + 1);
  }
}

TEST_P(Bundles, InterruptModeServesWhileTheApplicationComputes) {
  std::atomic<int> runs{0};
  const auto count = [](void* context, Token&, const Message&) { ++*static_cast<std::atomic<int>*>(context); };
  ASSERT_EQ(b.endpoint->set_handler(60, count, &runs), Status::ok);
  ASSERT_EQ(b.bundle->start_interrupts(), Status::ok);
  EXPECT_EQ(b.bundle->start_interrupts(), Status::bad_state);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(a.endpoint->request(0, 60, {}), Status::ok);
  while (a.endpoint->outstanding() != 0) a.bundle->poll();
  EXPECT_EQ(runs, 300);
  b.bundle->stop_interrupts();
  ASSERT_EQ(a.endpoint->request(0, 60, {}), Status::ok);
  while (!b.bundle->has_message()) a.bundle->poll();
  EXPECT_EQ(runs, 300);
  b.bundle->poll();
  EXPECT_EQ(runs, 301);
}

class ParallelBundles : public Bundles {
  BundleMode mode() override { return BundleMode::parallel; }
};

TEST_P(ParallelBundles, AStopEndsTheWaitOfOneThreadOfTwo) {
  std::atomic<bool> is_done{false};
  std::stop_source stop;
  std::thread other([&] {
    while (!is_done) a.bundle->wait(std::chrono::steady_clock::now() + 100ms);
  });
  std::atomic<Status> result{Status::ok};
  std::thread stopped([&] { result = a.bundle->wait(std::chrono::steady_clock::now() + 60s, stop.get_token()); });
  std::this_thread::sleep_for(10ms);
  stop.request_stop();
  stopped.join();
  EXPECT_EQ(result.load(), Status::canceled);
  is_done = true;
  other.join();
}

TEST_P(ParallelBundles, ManyThreadsSendAndServeAtOnce) {
  static std::atomic<int> requests, replies;
  requests = 0;
  replies = 0;
  constexpr std::uint8_t kAsk = 70, kTell = 71;
  const auto ask = [](void*, Token& token, const Message& message) {
    ++requests;
    EXPECT_EQ(message.data.size(), 2000u);
    EXPECT_EQ(token.reply(kTell, {}), Status::ok);
  };
  const auto tell = [](void*, Token&, const Message&) { ++replies; };
  for (Side* side : {&a, &b}) {
    ASSERT_EQ(side->endpoint->set_handler(kAsk, ask), Status::ok);
    ASSERT_EQ(side->endpoint->set_handler(kTell, tell), Status::ok);
  }
  constexpr int kThreads = 2, kEach = 400;
  std::atomic<int> left = 2 * kThreads;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2 * kThreads; ++i) {
    threads.emplace_back([&, i] {
      Side& side = i % 2 == 0 ? a : b;
      const auto data = pattern(2000);
      for (int n = 0; n < kEach; ++n) EXPECT_EQ(side.endpoint->request_medium(0, kAsk, data, {}), Status::ok);
      --left;
      while (left != 0 || a.endpoint->outstanding() != 0 || b.endpoint->outstanding() != 0)
        side.bundle->wait(std::chrono::steady_clock::now() + 1ms);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(requests, 2 * kThreads * kEach);
  EXPECT_EQ(replies, 2 * kThreads * kEach);
}

#ifndef FAIRLEAD_IS_SANITIZED  // a sanitizer makes a poll take longer than IdlePolls::kPollMost
// A thread that polls without end next to a computing thread on the same processor would use up its time slice. The
// thread that it waits for could then not run for milliseconds.
TEST_P(Bundles, PollsInVainSleepBesideWhoComputes) {
  const base::CrowdedProcessor crowded;
  EXPECT_TRUE(crowded.makes_sleep([&] { a.bundle->poll(); }));
}
#endif

class Impatient : public ParallelBundles {
  DomainSettings settings() override { return {.request_timeout = 50ms}; }
};

// A thread in an unlimited sleep still notices when another thread's request times out.
TEST_P(Impatient, ASleeperLooksAfterTheRequestsOfOthers) {
  std::thread sleeper([&] {
    while (a.returned.empty() && a.bundle->wait(std::chrono::steady_clock::now() + 100s) == Status::ok) continue;
  });
  ASSERT_EQ(a.endpoint->request(0, kEcho, {}), Status::ok);
  sleeper.join();
  ASSERT_EQ(a.returned.size(), 1u);
  EXPECT_EQ(a.returned[0].refusal, Refusal::congestion);
}

class Loss : public Pair {
  DomainSettings settings() override { return {.engine = {{"fault", "drop=5%,seed=7"}}}; }
};

TEST_F(Loss, IsNotSeen) {
  run_good_requests(2000);
  const auto data = pattern(100'000);
  for (std::size_t i = 1; i <= 20; ++i) {  // one by one, because all go to the same place
    ASSERT_EQ(a.endpoint->request_long(0, 0, kEcho, data, {}), Status::ok);
    ASSERT_TRUE(until([&] { return a.seen.size() == 2000 + i; }));
  }
  EXPECT_TRUE(a.returned.empty());
}

INSTANTIATE_TEST_SUITE_P(Path, Bundles, testing::Values("udp", "host"));
INSTANTIATE_TEST_SUITE_P(Path, ParallelBundles, testing::Values("udp", "host"));
INSTANTIATE_TEST_SUITE_P(Path, Impatient, testing::Values("udp", "host"));

}  // namespace
}  // namespace fairlead::am
