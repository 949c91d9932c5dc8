#include "queue/event_queue.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>

#include "base/slowness_for_tests.hpp"

namespace fairlead::queue {
namespace {

TEST(EventQueue, MinimumSizeHoldsOneEvent) {
  EventQueue<std::uint64_t> queue(1);
  EXPECT_EQ(queue.consumer().size(), 2U);
  EXPECT_EQ(queue.consumer().state(), State::empty);
  EXPECT_EQ(queue.consume(), nullptr);
  EXPECT_EQ(queue.produce(7), Status::ok);
  EXPECT_EQ(queue.consumer().state(), State::full);
  EXPECT_EQ(queue.produce(8), Status::again);
  const auto* record = queue.consume();
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(*record, 7U);
  EXPECT_EQ(queue.consume(), nullptr);
  EXPECT_EQ(queue.consumer().status(), Status::again);
}

TEST(EventQueue, ReserveGrowsAtEveryFillAndKeepsOrder) {
  for (std::uint32_t filled = 0; filled <= 4; ++filled) {
    for (std::uint32_t rotated = 0; rotated < 6; ++rotated) {
      EventQueue<std::uint64_t> queue(4);
      std::uint64_t produced = 0, consumed = 0;
      auto produce = [&] { ASSERT_EQ(queue.produce(produced++), Status::ok); };
      auto consume = [&] {
        const auto* record = queue.consume();
        ASSERT_NE(record, nullptr);
        ASSERT_EQ(*record, consumed++);
      };
      for (std::uint32_t i = 0; i < rotated; ++i) {
        produce();
        consume();
      }
      for (std::uint32_t i = 0; i < filled; ++i) produce();
      ASSERT_EQ(queue.reserve(9), Status::ok);
      ASSERT_EQ(queue.capacity(), 9U);
      while (produced - consumed < 9) produce();
      EXPECT_EQ(queue.produce(0), Status::again);
      while (produced < 100) {
        consume();
        produce();
      }
      while (consumed < produced) consume();
      EXPECT_TRUE(queue.is_empty());
    }
  }
}

TEST(EventQueue, EachOfManyTakenAtOnceHasRoomForTheNext) {
  for (std::size_t at_once = 1; at_once <= 9; ++at_once) {
    EventQueue<std::uint64_t> queue(8);
    std::uint64_t produced = 0, consumed = 0;
    for (int round = 0; round < 100; ++round) {
      while (produced < consumed + 8) ASSERT_EQ(queue.produce(produced++), Status::ok) << at_once << " at once";
      ASSERT_EQ(queue.produce(0), Status::again);
      std::array<std::uint64_t, 9> taken{};
      for (std::size_t left = 1 + static_cast<std::size_t>(round % 8); left > 0;) {
        const std::size_t count = queue.consume(std::span(taken).first(std::min(left, at_once)));
        ASSERT_GT(count, 0U);
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(taken[i], consumed++);
        left -= count;
      }
    }
  }
}

// malloc() maps large blocks, and takes those that are smaller than the largest freed one from the heap.
TEST(EventQueue, GivesLargeMemoryBackToTheSystem) {
  void* volatile large = std::malloc(std::size_t{8} << 20);  // volatile: the compiler leaves out pairs of these calls
  std::free(large);
  const auto ballast = [] { return std::make_unique<std::byte[]>(std::size_t{256} << 10); };
  auto queue = std::make_unique<EventQueue<std::uint64_t>>();
  const auto before = ballast();
  ASSERT_EQ(queue->reserve(100'000), Status::ok);
  const auto behind = ballast();
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(queue->produce(i), Status::ok);
  const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(queue->producer().pnext()) & ~std::uintptr_t{4095};
  unsigned char residence = 0;
  ASSERT_EQ(::mincore(reinterpret_cast<void*>(place), 1, &residence), 0);
  queue.reset();
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(place), 1, &residence), -1) << "still mapped";
}

TEST(EventQueue, ConcurrentlyProducedAndConsumedWhileItGrows) {
  constexpr std::uint64_t kEvents = 300'000 / base::kThreadSlowness;
  EventQueue<std::uint64_t> queue(2);
  std::jthread producer([&] {
    for (std::uint64_t i = 0; i < kEvents;) {
      if (queue.produce(i) == Status::ok)
        ++i;
      else
        std::this_thread::yield();
    }
  });
  for (std::uint64_t i = 0; i < kEvents;) {
    if (const auto* record = queue.consume()) {
      ASSERT_EQ(*record, i);
      if (++i % 10'000 == 0) {
        ASSERT_EQ(queue.reserve(queue.capacity() + 3), Status::ok);
      }
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace
}  // namespace fairlead::queue
