// Unit tests of the ring, and both sides together in one thread.

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "base/slowness_for_tests.hpp"
#include "queue/queue_fixture.hpp"

namespace fairlead::queue {
namespace {

// Producer and consumer over two mappings of the same memory.
struct Ring {
  SharedSegments memory;
  SecondMapping second{memory};
  Consumer consumer;
  Producer producer;
  std::uint64_t produced = 0;
  std::uint64_t consumed = 0;

  explicit Ring(const Geometry& geometry, std::uint64_t room = 0)
      : consumer(make_consumer(
            memory.map(memory.add(segment_bytes(geometry.element_bytes, geometry.elements + room, room + 1))),
            geometry)),
        producer(make_producer(second)) {}

  bool put() { return put_number(producer, produced) && (++produced, true); }
  bool get() { return get_number(consumer, consumed) && (++consumed, true); }
  void fill() {
    while (put()) {
    }
  }
  void drain() {
    while (get()) {
    }
  }
};

TEST(Ring, OfMinimumSizeStartsEmpty) {
  Ring ring({64, 2});
  EXPECT_EQ(ring.consumer.size(), 2U);
  EXPECT_EQ(ring.consumer.count(), 0U);
  EXPECT_EQ(ring.consumer.state(), State::empty);
  EXPECT_TRUE(ring.consumer.is_empty());
  EXPECT_EQ(ring.producer.room(), 1U);
}

TEST(Ring, RefusesToBeMadeOfNonsense) {
  SharedSegments memory;
  const auto segment = memory.map(memory.add(4096));
  EXPECT_FALSE(Consumer::create(segment, {64, 1}).has_value());
  EXPECT_FALSE(Consumer::create(segment, {7, 2}).has_value());
  EXPECT_FALSE(Consumer::create(segment, {0, 2}).has_value());
  EXPECT_FALSE(Consumer::create(segment, {kElementBytesMax + 8, 2}).has_value());
  EXPECT_FALSE(Consumer::create(segment, {64, 1000}).has_value());
  EXPECT_FALSE(Consumer::create(segment.subspan(8), {64, 2}).has_value());
  EXPECT_FALSE(Consumer::create({}, {64, 2}).has_value());
  EXPECT_FALSE(Producer::attach(memory).has_value()) << "never made";
}

TEST(Ring, BothSidesGoOnInAnotherProgram) {
  const Geometry geometry{.element_bytes = 64, .elements = 5, .first_number = ~std::uint64_t{0} - 6};
  SharedSegments memory;
  const auto segment = memory.map(memory.add(segment_bytes(64, 5)));
  Consumer consumer = make_consumer(segment, geometry);
  Producer producer = make_producer(memory);
  std::uint64_t produced = 0, consumed = 0;
  for (int step = 0; step < 60; ++step) {
    if (step % 3 != 2 && put_number(producer, produced)) ++produced;
    if (step % 7 == 0) consumer = Consumer::resume(segment, geometry, consumer.consumed()).value();
    if (step % 5 == 0) producer = Producer::resume(memory, producer.position()).value();
    if (step % 2 == 0 && get_number(consumer, consumed)) ++consumed;
  }
  while (get_number(consumer, consumed)) ++consumed;
  EXPECT_EQ(consumed, produced);
  EXPECT_GT(produced, 15u);
}

TEST(Ring, AProducerGoesOnInARingThatHasGrownMeanwhile) {
  Ring ring({64, 3}, 8);
  ASSERT_TRUE(ring.put() && ring.get() && ring.put());
  const Producer::Position position = ring.producer.position();
  ASSERT_EQ(ring.consumer.add({}, 8), Status::ok);
  ring.producer = Producer::resume(ring.second, position).value();
  ring.fill();
  ring.drain();
  EXPECT_EQ(ring.consumed, ring.produced);
  EXPECT_GT(ring.produced, 9u);
}

TEST(Ring, AProducerDoesNotGoOnWhereThereIsNoPlace) {
  Ring ring({64, 4});
  ASSERT_TRUE(ring.put());
  const Producer::Position position = ring.producer.position();
  Producer::Position other = position;
  other.run = 77;
  EXPECT_FALSE(Producer::resume(ring.second, other).has_value());
  other = position;
  other.index = 4;
  EXPECT_FALSE(Producer::resume(ring.second, other).has_value());
  other = position;
  other.shape = (std::uint64_t{1} << 60) | (position.shape & ~0U);
  EXPECT_FALSE(Producer::resume(ring.second, other).has_value());
  EXPECT_TRUE(Producer::resume(ring.second, position).has_value());
}

TEST(Ring, ProducesAndConsumesOne) {
  Ring ring({64, 2});
  EXPECT_TRUE(ring.put());
  EXPECT_EQ(ring.consumer.count(), 1U);
  EXPECT_EQ(ring.consumer.state(), State::full);
  EXPECT_TRUE(ring.producer.is_full());
  EXPECT_FALSE(ring.put());
  EXPECT_EQ(ring.producer.status(), Status::again);
  EXPECT_TRUE(ring.get());
  EXPECT_EQ(ring.consumer.state(), State::empty);
}

TEST(Ring, ConsumesNothingFromEmpty) {
  Ring ring({64, 2});
  EXPECT_FALSE(ring.get());
  EXPECT_EQ(ring.consumer.status(), Status::again);
  EXPECT_TRUE(ring.put() && ring.get());
  EXPECT_FALSE(ring.get());
}

TEST(Ring, AskingForTheNextElementAgainGivesTheSame) {
  Ring ring({64, 4});
  auto* element = ring.producer.pnext();
  EXPECT_EQ(ring.producer.pnext(), element);
  EXPECT_EQ(ring.consumer.count(), 0U);
}

TEST(Ring, LargerOnePassesThroughAllStates) {
  Ring ring({64, 8});
  for (int lap = 0; lap < 20; ++lap) {
    EXPECT_EQ(ring.consumer.state(), State::empty);
    for (int i = 0; i < 6; ++i) {
      EXPECT_TRUE(ring.put());
      EXPECT_EQ(ring.consumer.state(), State::partial);
    }
    EXPECT_TRUE(ring.put());
    EXPECT_EQ(ring.consumer.state(), State::full);
    EXPECT_FALSE(ring.put());
    ring.drain();
  }
  EXPECT_EQ(ring.consumed, 140U);
}

// The producer never writes to the element that the consumer took last.
TEST(Ring, ConsumerOwnsTheLastElement) {
  Ring ring({64, 4});
  ring.fill();
  const auto* owned = ring.consumer.get();
  ASSERT_EQ(number_in(owned), 0U);
  ring.fill();
  EXPECT_EQ(number_in(owned), 0U);
  EXPECT_EQ(ring.produced, 4U) << "one more: the element owned from the start went back";
}

TEST(Ring, AnyElementSizeWorks) {
  for (const std::uint32_t bytes : {8U, 24U, 64U, 72U, 120U, 4096U}) {
    Ring ring({bytes, 5}, 7);
    for (int lap = 0; lap < 4; ++lap) {
      ring.fill();
      ring.drain();
    }
    EXPECT_EQ(ring.consumer.add({0}, 7), Status::ok);
    ring.fill();
    EXPECT_EQ(ring.consumer.count(), 11U) << bytes;
    ring.drain();
  }
}

TEST(Ring, BatchesStopAtTheEndOfARunAndAtTheLimit) {
  Ring ring({8, 10});
  EXPECT_EQ(ring.producer.pnext(0).count, 0U);
  for (std::uint32_t lap = 0; lap < 30; ++lap) {
    const auto given = ring.producer.pnext(lap % 12 + 1);
    ASSERT_GT(given.count, 0U);
    for (std::uint32_t i = 0; i < given.count; ++i) {
      std::memcpy(given.first + i * 8, &ring.produced, 8);
      ++ring.produced;
    }
    ring.producer.put(given.count);
    while (ring.consumed < ring.produced) {
      const auto taken = ring.consumer.get(7);
      ASSERT_GT(taken.count, 0U);
      for (std::uint32_t i = 0; i < taken.count; ++i) ASSERT_EQ(number_in(taken.first + i * 8), ring.consumed++);
    }
    EXPECT_EQ(ring.consumer.get(7).count, 0U);
  }
}

TEST(Ring, AllElementsOfABatchStayOwned) {
  Ring ring({8, 8});
  ring.fill();
  const auto taken = ring.consumer.get(5);
  ASSERT_EQ(taken.count, 5U);
  ring.fill();
  EXPECT_EQ(ring.produced, 8U) << "one more: the element owned from the start went back";
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(number_in(taken.first + i * 8), i);
  ring.consumed = 5;
  EXPECT_TRUE(ring.get());
  ring.fill();
  EXPECT_EQ(ring.produced, 13U);
  ring.drain();
  EXPECT_EQ(ring.consumed, 13U);
}

// The counters wrap around zero during traffic, with and without growth.
TEST(Ring, CountersWrap) {
  for (std::uint64_t before = 0; before < 12; ++before) {
    Ring ring({8, 4, std::uint64_t{0} - before}, 8);
    for (int lap = 0; lap < 4; ++lap) {
      ring.fill();
      ASSERT_EQ(ring.consumer.state(), State::full);
      ring.drain();
      ASSERT_EQ(ring.consumer.state(), State::empty);
      ASSERT_EQ(ring.consumer.add({0}, 2), Status::ok);
    }
    EXPECT_EQ(ring.consumed, 3U + 5U + 7U + 9U);
    EXPECT_EQ(ring.producer.produced(), ring.consumed - before);
  }
}

// Every fill level, every position, growth by one and by many: order and capacity stay right.
TEST(Ring, GrowsAtEveryPlace) {
  for (std::uint32_t rotated = 0; rotated < 5; ++rotated) {
    for (std::uint32_t filled = 0; filled < 5; ++filled) {
      for (const std::uint32_t added : {1U, 2U, 5U}) {
        Ring ring({8, 5}, 3 * added);
        for (std::uint32_t i = 0; i < rotated; ++i) ASSERT_TRUE(ring.put() && ring.get());
        for (int round = 0; round < 3; ++round) {
          while (ring.consumer.count() < filled) ASSERT_TRUE(ring.put());
          ASSERT_EQ(ring.consumer.add({0}, added), Status::ok);
          ASSERT_TRUE(ring.put());
          ASSERT_TRUE(ring.get());
        }
        ring.fill();
        ASSERT_EQ(ring.consumer.count(), 4 + 3 * added);
        ring.drain();
        ring.fill();
        ASSERT_EQ(ring.consumer.count(), 4 + 3 * added);
        ring.drain();
      }
    }
  }
}

// New elements that follow the consumer's run in memory extend it: no new run is written.
TEST(Ring, NeighboursInMemoryBecomeOneRun) {
  Ring ring({8, 4}, 60);
  for (int i = 0; i < 60; ++i) ASSERT_EQ(ring.consumer.add({0}, 1), Status::ok);
  const auto whole = ring.producer.pnext(1000);
  EXPECT_EQ(whole.count, 63U);
}

TEST(Ring, GrowthThatFindsNoMemoryChangesNothing) {
  Ring ring({64, 4});
  EXPECT_EQ(ring.consumer.add({0}, 1000), Status::no_memory);
  EXPECT_EQ(ring.consumer.add({0}, 0), Status::invalid);
  EXPECT_EQ(ring.consumer.add({1}, 1), Status::invalid) << "not blessed: nobody named that segment";
  EXPECT_EQ(ring.consumer.add({kSegmentsMax}, 1), Status::invalid);
  EXPECT_FALSE(ring.consumer.attach({0}, ring.memory.map({0}))) << "taken";
  EXPECT_EQ(ring.consumer.size(), 4U);
  ring.fill();
  EXPECT_EQ(ring.produced, 3U);
  ring.drain();
}

TEST(Ring, GrowsFromANewSegmentThatTheProducerMapsOnFirstUse) {
  Ring ring({64, 4});
  for (int round = 1; round <= 5; ++round) {
    const auto number = ring.memory.add(segment_bytes(64, 16, 2));
    ASSERT_TRUE(ring.consumer.attach(number, ring.memory.map(number)));
    ASSERT_TRUE(ring.put() && ring.get());
    ASSERT_EQ(ring.consumer.add(number, 8), Status::ok);
    ASSERT_EQ(ring.consumer.add(number, 8), Status::ok);
    EXPECT_EQ(ring.second.mapped, round) << "not before it is met";
    ring.fill();
    EXPECT_EQ(ring.second.mapped, round + 1);
    EXPECT_EQ(ring.consumer.count(), ring.consumer.size() - 1);
    ring.drain();
  }
}

TEST(Ring, PreparedSegmentIsNotMappedOnTheWay) {
  Ring ring({64, 4});
  const auto number = ring.memory.add(segment_bytes(64, 16));
  ASSERT_TRUE(ring.consumer.attach(number, ring.memory.map(number)));
  EXPECT_TRUE(ring.producer.prepare(number));
  EXPECT_FALSE(ring.producer.prepare({number.value + 1})) << "nobody made it";
  EXPECT_EQ(ring.second.mapped, 2);
  ASSERT_EQ(ring.consumer.add(number, 16), Status::ok);
  ring.fill();
  ring.drain();
  EXPECT_EQ(ring.second.mapped, 2);
}

// Against a model: any sequence of puts, gets, batches and growth behaves like a plain bounded list.
TEST(Ring, RandomWalksBehaveLikeAList) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
    Ring ring({8, 2 + below(6), random()}, 400);
    for (int step = 0; step < 1000; ++step) {
      const auto before = ring.produced - ring.consumed;
      ASSERT_EQ(ring.consumer.count(), before) << "seed " << seed;
      switch (below(8)) {
        case 0:
          if (ring.consumer.size() < 380) {
            ASSERT_EQ(ring.consumer.add({0}, 1 + below(4)), Status::ok);
          }
          break;
        case 1:
        case 2: {
          const auto taken = ring.consumer.get(1 + below(10));
          for (std::uint32_t i = 0; i < taken.count; ++i) ASSERT_EQ(number_in(taken.first + i * 8), ring.consumed++);
          ASSERT_EQ(taken.count == 0, before == 0);
          break;
        }
        case 3:
          ASSERT_EQ(ring.get(), before != 0);
          break;
        case 4:
          ring.fill();
          ASSERT_GE(ring.produced - ring.consumed, before);
          break;
        default:
          if (before + 12 < ring.consumer.size()) {
            ASSERT_TRUE(ring.put()) << "seed " << seed;
          }
      }
    }
    ring.drain();
    ASSERT_EQ(ring.consumed, ring.produced) << "seed " << seed;
  }
}

TEST(Ring, ProducesAndConsumesConcurrentlyWhileItGrows) {
  constexpr std::uint64_t kElements = 200'000 / base::kThreadSlowness;
  for (const std::uint32_t step : {1U, 16U}) {
    Ring ring({64, 4}, 40 * step);
    std::jthread producing([&] {
      while (ring.produced < kElements) {
        if (!ring.put()) std::this_thread::yield();
      }
    });
    while (ring.consumed < kElements) {
      if (!ring.get()) {
        std::this_thread::yield();
      } else if (ring.consumed % (kElements / 40) == 0) {
        ASSERT_EQ(ring.consumer.add({0}, step), Status::ok);
      }
    }
    EXPECT_EQ(ring.consumer.size(), 4 + 40 * step);
  }
}

}  // namespace
}  // namespace fairlead::queue
