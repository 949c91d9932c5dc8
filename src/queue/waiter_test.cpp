#include "queue/waiter.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "queue/event_queue.hpp"

namespace fairlead::queue {
namespace {

bool is_readable(int descriptor) {
  pollfd events{descriptor, POLLIN, 0};
  return poll(&events, 1, 0) == 1;
}

Waiter make_waiter() {
  auto waiter = Waiter::create();
  EXPECT_TRUE(waiter.has_value());
  return std::move(*waiter);
}

// Sleeps at once; returns false if nobody wakes it in ten seconds.
template <typename IsReady>
bool sleep_until(Waiter& waiter, IsReady&& is_ready) {
  while (waiter.arm(is_ready)) {
    pollfd events{waiter.descriptor(), POLLIN, 0};
    const bool is_woken = poll(&events, 1, 10'000) == 1;
    waiter.disarm();
    if (!is_woken) return is_ready();
  }
  return true;
}

TEST(Waiter, NotifyWithoutSleeperWritesNothing) {
  auto waiter = make_waiter();
  waiter.notify();
  EXPECT_FALSE(is_readable(waiter.descriptor()));
}

TEST(Waiter, ArmedDescriptorBecomesReadableOnceUntilDisarmed) {
  auto waiter = make_waiter();
  ASSERT_TRUE(waiter.arm([] { return false; }));
  EXPECT_FALSE(is_readable(waiter.descriptor()));
  waiter.notify();
  waiter.notify();
  EXPECT_TRUE(is_readable(waiter.descriptor()));
  waiter.disarm();
  EXPECT_FALSE(is_readable(waiter.descriptor()));
  waiter.notify();
  EXPECT_FALSE(is_readable(waiter.descriptor()));
}

TEST(Waiter, DoesNotArmWhenReady) {
  auto waiter = make_waiter();
  EXPECT_FALSE(waiter.arm([] { return true; }));
  waiter.notify();
  EXPECT_FALSE(is_readable(waiter.descriptor()));
}

// An event between announcement and poll: the poll finds it, and the wake-up written for it is taken back.
TEST(Waiter, EventBetweenAnnouncementAndLookIsFound) {
  auto waiter = make_waiter();
  bool is_there = false;
  EXPECT_FALSE(waiter.arm([&] {
    is_there = true;
    waiter.notify();
    return is_there;
  }));
  EXPECT_FALSE(is_readable(waiter.descriptor()));
}

// The producer loses its processor between the two steps of notify().
TEST(Waiter, AWriteThatComesAfterTheSleepEndsTheNextOne) {
  SleepFlag flag;
  const int descriptor = eventfd(0, EFD_NONBLOCK);
  Waiter waiter(flag, base::FileDescriptor(descriptor));
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(waiter.arm([] { return false; }));
    ASSERT_EQ(flag.sleeping.exchange(0), 1U);
    waiter.disarm();
    EXPECT_FALSE(is_readable(descriptor));
    eventfd_write(descriptor, 1);
    ASSERT_TRUE(waiter.arm([] { return false; }));
    EXPECT_TRUE(is_readable(descriptor));
    waiter.disarm();
    EXPECT_FALSE(is_readable(descriptor)) << "otherwise all later sleeps would end at once";
  }
}

TEST(Waiter, WorksInAForeignEpollLoop) {
  auto waiter = make_waiter();
  EventQueue<std::uint64_t> queue;
  auto has_event = [&] { return !queue.is_empty(); };
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  epoll_event interest{EPOLLIN, {}};
  ASSERT_EQ(epoll_ctl(loop, EPOLL_CTL_ADD, waiter.descriptor(), &interest), 0);
  constexpr std::uint64_t kEvents = 2000;
  std::jthread producer([&] {
    for (std::uint64_t i = 0; i < kEvents;) {
      if (queue.produce(i) == Status::ok) {
        ++i;
        waiter.notify();
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (std::uint64_t i = 0; i < kEvents;) {
    while (const auto* event = queue.consume()) ASSERT_EQ(*event, i++);
    if (i == kEvents || !waiter.arm(has_event)) continue;
    epoll_event happened;
    ASSERT_EQ(epoll_wait(loop, &happened, 1, 10'000), 1);
    waiter.disarm();
  }
  close(loop);
}

// Every event is followed by a sleep: a lost wake-up would show as a sleep of ten seconds.
TEST(Waiter, LosesNoWakeUp) {
  auto ask = make_waiter();
  auto answer = make_waiter();
  std::atomic<int> asked{0}, answered{0};
  constexpr int kRounds = 6000;
  std::jthread partner([&] {
    for (int i = 1; i <= kRounds; ++i) {
      EXPECT_TRUE(sleep_until(ask, [&] { return asked.load() >= i; }));
      answered.store(i, std::memory_order_release);
      answer.notify();
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    asked.store(i, std::memory_order_release);
    ask.notify();
    ASSERT_TRUE(sleep_until(answer, [&] { return answered.load() >= i; }));
  }
}

TEST(Waiter, WakesAnotherProcess) {
  struct Shared {
    SleepFlag flag;
    std::atomic<int> events{0};
  };
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* shared = new (memory) Shared;
  Waiter waiter(shared->flag, base::FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  constexpr int kEvents = 200;
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < kEvents; ++i) {
      shared->events.fetch_add(1, std::memory_order_release);
      waiter.notify();
    }
    _exit(0);
  }
  for (int i = 1; i <= kEvents; ++i) {
    EXPECT_TRUE(sleep_until(waiter, [&] { return shared->events.load() >= i; }));
  }
  waitpid(child, nullptr, 0);
  munmap(memory, sizeof(Shared));
}

}  // namespace
}  // namespace fairlead::queue
