// Two processes that map the queue at different addresses, and the death of one at any instruction of its work.

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

#include "base/slowness_for_tests.hpp"
#include "queue/queue_fixture.hpp"

namespace fairlead::queue {
namespace {

constexpr std::uint64_t kCrossing = 200'000;

int exit_code_of(pid_t child) {
  int outcome = 0;
  return waitpid(child, &outcome, 0) == child && WIFEXITED(outcome) ? WEXITSTATUS(outcome) : -1;
}

// The consumer is here, the producer in a child. The queue grows from segments that the child maps on first use.
TEST(Processes, ShareAQueueAtDifferentAddressesWhileItGrows) {
  SharedSegments memory;
  for (int i = 0; i < 8; ++i) memory.add(segment_bytes(64, 20, 8));
  auto consumer = make_consumer(memory.map({0}), {64, 4, ~std::uint64_t{0} - 1000});
  const pid_t child = fork();
  if (child == 0) {
    SecondMapping second(memory);
    auto producer = Producer::attach(second);
    if (!producer) _exit(1);
    for (std::uint64_t n = 0; n < kCrossing;) {
      if (put_number(*producer, n)) {
        ++n;
      } else if (producer->status() == Status::again) {
        std::this_thread::yield();
      } else {
        _exit(2);
      }
    }
    _exit(second.mapped == 8 && second.map({0}).data() != memory.map({0}).data() ? 0 : 3);
  }
  std::uint32_t segment = 0;
  for (std::uint64_t n = 0; n < kCrossing;) {
    if (!get_number(consumer, n)) {
      ASSERT_EQ(consumer.status(), Status::again);
      std::this_thread::yield();
    } else if (++n % (kCrossing / 80) == 0 && consumer.add({segment}, 5) == Status::no_memory && segment < 7) {
      ++segment;
      ASSERT_TRUE(consumer.attach({segment}, memory.map({segment})));
      ASSERT_EQ(consumer.add({segment}, 5), Status::ok);
    }
  }
  EXPECT_EQ(segment, 7U);
  EXPECT_EQ(exit_code_of(child), 0);
}

// The roles exchanged.
TEST(Processes, ConsumerMayBeTheChild) {
  SharedSegments memory;
  memory.add(segment_bytes(64, 1024, 100));
  auto consumer = make_consumer(memory.map({0}), {64, 4});
  const pid_t child = fork();
  if (child == 0) {
    for (std::uint64_t n = 0; n < kCrossing;) {
      const auto* element = consumer.get();
      if (element == nullptr) {
        if (consumer.status() != Status::again) _exit(1);
        std::this_thread::yield();
      } else if (number_in(element) != n++) {
        _exit(2);
      } else if (n % 5000 == 0 && consumer.add({0}, 10) != Status::ok) {
        _exit(3);
      }
    }
    _exit(0);
  }
  SecondMapping second(memory);
  auto producer = make_producer(second);
  for (std::uint64_t n = 0; n < kCrossing;) {
    if (put_number(producer, n)) {
      ++n;
    } else {
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(exit_code_of(child), 0);
}

TEST(Processes, RefuseASegmentThatCouldShrink) {
  char name[] = "/tmp/fairlead-queue-test-XXXXXX";
  const int file = mkstemp(name);
  ASSERT_GE(file, 0);
  unlink(name);
  ASSERT_EQ(ftruncate(file, 4096), 0);
  EXPECT_FALSE(SharedSegment::map(file).has_value());
  close(file);
  EXPECT_FALSE(SharedSegment::map(-1).has_value());
}

// A child that does `work`, and is killed after this many instructions.
enum class Death { killed, finished_before, not_possible_here };

Death die_after(std::uint64_t instructions, const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
    raise(SIGSTOP);
    work();
    raise(SIGSTOP);
  }
  int outcome = 0;
  waitpid(child, &outcome, 0);
  if (!WIFSTOPPED(outcome)) return Death::not_possible_here;
  bool has_finished = false;
  for (std::uint64_t i = 0; i < instructions && !has_finished; ++i) {
    ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr);
    waitpid(child, &outcome, 0);
    has_finished = !WIFSTOPPED(outcome) || WSTOPSIG(outcome) != SIGTRAP;
  }
  kill(child, SIGKILL);
  waitpid(child, &outcome, 0);
  return has_finished ? Death::finished_before : Death::killed;
}

// Death after each number of instructions: `trial` dies once, and checks the survivor. Under a sanitizer the steps are
// wider, since most instructions are its own.
constexpr std::uint64_t kStepsWider = base::kSlowness == 1 ? 8 : 2;
constexpr std::uint64_t kStepsFirst = base::kSlowness == 1 ? 100 : 10;

template <typename Trial>
void die_everywhere(const Trial& trial) {
  int deaths = 0;
  for (std::uint64_t instructions = 0; instructions < 100'000;
       instructions += 1 + instructions / (instructions < 600 ? kStepsFirst : kStepsWider)) {
    const auto death = trial(instructions);
    if (death == Death::not_possible_here) GTEST_SKIP() << "ptrace is forbidden here";
    if (testing::Test::HasFatalFailure()) FAIL() << "death after " << instructions << " instructions";
    if (death == Death::finished_before) break;
    ++deaths;
  }
  EXPECT_GT(deaths, 30);
}

TEST(Survivor, ConsumerKeepsWhatADeadProducerPublished) {
  die_everywhere([](std::uint64_t instructions) {
    SharedSegments memory;
    memory.add(segment_bytes(64, 8));
    auto consumer = make_consumer(memory.map({0}), {64, 8});
    SecondMapping second(memory);
    auto producer = make_producer(second);
    std::uint64_t consumed = 0;
    for (std::uint64_t n = 0; n < 5; ++n) EXPECT_TRUE(put_number(producer, n));
    for (; consumed < 3; ++consumed) EXPECT_TRUE(get_number(consumer, consumed));
    const auto death = die_after(instructions, [&] {
      for (std::uint64_t n = 5; n < 9; ++n) put_number(producer, n);  // across the end of the run
    });
    while (get_number(consumer, consumed)) ++consumed;
    EXPECT_EQ(consumer.status(), Status::again);
    EXPECT_GE(consumed, 5U);
    if (death == Death::finished_before) {
      EXPECT_EQ(consumed, 9U);
    }
    EXPECT_TRUE(consumer.is_empty());
    return death;
  });
}

// The consumer dies while it takes elements and cuts the ring to grow it, in its own and in a new segment. The producer
// goes on to the last element granted, and overwrites none that was not taken.
TEST(Survivor, ProducerWalksTheRingOfADeadConsumer) {
  die_everywhere([](std::uint64_t instructions) {
    constexpr std::uint64_t kPut = 6;
    SharedSegments memory;
    memory.add(segment_bytes(64, 32, 4));
    memory.add(segment_bytes(64, 8, 2));
    auto consumer = make_consumer(memory.map({0}), {64, 8});
    SecondMapping second(memory);
    auto producer = make_producer(second);
    std::vector<std::byte*> waiting;
    for (std::uint64_t n = 0; n < kPut; ++n) {
      waiting.push_back(producer.pnext());
      EXPECT_TRUE(put_number(producer, n));
    }
    const auto death = die_after(instructions, [&] {
      consumer.get();
      consumer.get();
      consumer.add({0}, 3);
      consumer.get();
      consumer.attach({1}, memory.map({1}));
      consumer.add({1}, 4);
    });
    std::vector<const std::byte*> filled;
    while (const auto* element = producer.pnext()) {
      filled.push_back(element);
      EXPECT_TRUE(put_number(producer, 100 + filled.size()));
      if (filled.size() > 20) break;
    }
    EXPECT_EQ(producer.status(), Status::again);
    EXPECT_LE(filled.size(), 8 - kPut - 1 + 3 + 7) << "room of before, three got, seven added";
    EXPECT_GE(filled.size(), 8 - kPut - 1);
    if (death == Death::finished_before) {
      EXPECT_EQ(filled.size(), 8 - kPut - 1 + 3 + 7);
    }
    for (std::uint64_t n = 3; n < kPut; ++n) EXPECT_EQ(number_in(waiting[n]), n) << "an element that was not taken";
    std::ranges::sort(filled);
    EXPECT_EQ(std::ranges::adjacent_find(filled), filled.end()) << "no element twice";
    return death;
  });
}

}  // namespace
}  // namespace fairlead::queue
