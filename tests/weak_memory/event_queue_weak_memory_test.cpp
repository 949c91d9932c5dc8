// The event queue's code, not its model, under a weak memory model. Producer and consumer interleave in all ways within
// the bounds, while the ring grows. Each memory order in the code is needed: without it, some run loses, repeats or
// tears an event.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "queue/consumer.hpp"
#include "queue/producer.hpp"
#include "tests/environment.hpp"
#include "tests/weak_memory/weak_world.hpp"

namespace fairlead::tests {
namespace {

using namespace queue;

/// How producer and consumer use the queue.
struct Plan {
  std::uint32_t elements;
  std::uint64_t events;
  std::uint32_t batch = 1;
  std::vector<std::uint64_t> grows_after{};  // after how many events
  std::uint32_t growth = 1;                  // elements
};

enum class Fault : std::uint8_t {
  none,
  produced_stored_relaxed,
  produced_loaded_relaxed,
  grant_stored_relaxed,
  grant_loaded_relaxed,
  epoch_stored_relaxed,
  epoch_loaded_relaxed,
  shape_stored_relaxed,
  shape_loaded_relaxed,
  grant_before_epoch,
};
constexpr std::array kFaults{"none",
                             "ProducedStoredRelaxed",
                             "ProducedLoadedRelaxed",
                             "GrantStoredRelaxed",
                             "GrantLoadedRelaxed",
                             "EpochStoredRelaxed",
                             "EpochLoadedRelaxed",
                             "ShapeStoredRelaxed",
                             "ShapeLoadedRelaxed",
                             "GrantBeforeEpoch"};

constexpr std::uint32_t kBytes = 8;            // of an element
constexpr std::uint64_t kFirstNumber = ~1ULL;  // the counters wrap during the run

/// A queue with a world of its own.
class QueueRun final : public SegmentSource {
 public:
  QueueRun(const Plan& plan, Fault fault, WeakWorld& world) : plan_(plan), world_(world) {
    for (auto& segment : segments_) std::memset(segment.data(), 0, segment.size());
    world.plant(planted(fault));
  }

  std::string play() {
    std::optional<Consumer> consumer;
    std::optional<Producer> producer;
    world_.prepare(0,
                   [&] { consumer.emplace(*Consumer::create(segments_[0], {kBytes, plan_.elements, kFirstNumber})); });
    world_.prepare(1, [&] { producer.emplace(*Producer::attach(*this)); });
    return world_.run([&] { consume(*consumer); }, [&] { produce(*producer); });
  }

  std::span<std::byte> map(SegmentNumber number) override {
    if (number.value != 0 && world_.read(&segments_[number.value]) == 0) world_.fail("a segment that is not there");
    return segments_[number.value];
  }

 private:
  static PlantedFault planted(Fault fault) {
    const auto& header = *reinterpret_cast<const Header*>(segments_[0].data());
    constexpr std::uintptr_t kShape = offsetof(Run, shape);
    switch (fault) {
      case Fault::none:
        return {};
      case Fault::produced_stored_relaxed:
        return {.relaxed_store = &header.produced};
      case Fault::produced_loaded_relaxed:
        return {.relaxed_load = &header.produced};
      case Fault::grant_stored_relaxed:
        return {.relaxed_store = &header.grant};
      case Fault::grant_loaded_relaxed:
        return {.relaxed_load = &header.grant};
      case Fault::epoch_stored_relaxed:
        return {.relaxed_store = &header.epoch};
      case Fault::epoch_loaded_relaxed:
        return {.relaxed_load = &header.epoch};
      case Fault::shape_stored_relaxed:
        return {.relaxed_store_at = kShape};
      case Fault::shape_loaded_relaxed:
        return {.relaxed_load_at = kShape};
      case Fault::grant_before_epoch:
        return {.late = &header.epoch, .early = &header.grant};
    }
    return {};
  }

  void produce(Producer& producer) {
    for (std::uint64_t next = 0; next < plan_.events;) {
      const Stretch free = producer.pnext(plan_.batch);
      if (free.count == 0) {
        if (producer.status() != Status::again) world_.fail("the producer refuses the queue");
        world_.wait();
        continue;
      }
      const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(free.count, plan_.events - next));
      for (std::uint32_t i = 0; i < count; ++i) world_.write(free.first + std::size_t{i} * kBytes, next++);
      producer.put(count);
    }
  }

  void consume(Consumer& consumer) {
    consumer.look_at_once();
    std::uint32_t grown = 0;
    for (std::uint64_t next = 0; next < plan_.events;) {
      if (grown < plan_.grows_after.size() && next >= plan_.grows_after[grown]) {
        grow(consumer, ++grown);
        continue;
      }
      const Stretch got = consumer.get(plan_.batch);
      if (got.count == 0) {
        if (consumer.status() != Status::again) world_.fail("the consumer refuses the queue");
        world_.wait();
        continue;
      }
      for (std::uint32_t i = 0; i < got.count; ++i, ++next) {
        if (const auto event = world_.read(got.first + std::size_t{i} * kBytes); event != next)
          world_.fail(fmt::format("event {} comes where {} is due", event, next));
      }
      if (plan_.batch > 1) consumer.hand_back();
    }
  }

  void grow(Consumer& consumer, std::uint32_t number) {
    world_.write(&segments_[number], 1);
    const bool is_attached = consumer.attach({number}, segments_[number]);
    if (!is_attached || consumer.add({number}, plan_.growth) != Status::ok) world_.fail("the queue does not grow");
  }

  // At the same addresses in each run.
  alignas(kLinePairBytes) static inline std::array<std::array<std::byte, segment_bytes(kBytes, 8)>, 4> segments_;

  const Plan& plan_;
  WeakWorld& world_;
};

/// The first failure, and the number of runs before it.
struct Found {
  std::string wrong;
  std::uint64_t runs = 0;
};

Found search(const Plan& plan, Fault fault, WeakWorld::Bounds bounds, Choices choices = {}) {
  Found found;
  do {
    WeakWorld world(choices, bounds);
    found.wrong = QueueRun(plan, fault, world).play();
    ++found.runs;
  } while (found.wrong.empty() && choices.go_on());
  return found;
}

/// The producer's element is in the middle of its run or at its end, or the added elements continue the run. Events
/// come singly and in batches.
const std::array kPlans{Plan{.elements = 4, .events = 7, .batch = 2, .grows_after = {2}, .growth = 2},
                        Plan{.elements = 3, .events = 5, .grows_after = {1, 2}},
                        Plan{.elements = 2, .events = 4, .grows_after = {1}}};
constexpr WeakWorld::Bounds kBounds{.interruptions = 2, .old_loads = 1};

TEST(EventQueueInWeakMemory, LosesRepeatsAndTearsNothing) {
  for (const Plan& plan : kPlans) {
    const Found found = search(plan, Fault::none, kBounds);
    EXPECT_EQ(found.wrong, "") << "in run " << found.runs;
    EXPECT_GT(found.runs, 10'000U);
    fmt::print("{} runs\n", found.runs);
  }
}

// Wider bounds than an enumeration of all runs permits.
TEST(EventQueueInWeakMemory, HoldsInDrawnRuns) {
  const std::uint64_t seed = number_from("FAIRLEAD_TEST_SIM_SEED", 1);
  for (const Plan& plan : kPlans) {
    const Found found = search(plan, Fault::none, {.interruptions = 20, .old_loads = 10}, Choices(seed, 10'000));
    EXPECT_EQ(found.wrong, "") << "in run " << found.runs << " of FAIRLEAD_TEST_SIM_SEED=" << seed;
  }
}

class EventQueueFault : public testing::TestWithParam<Fault> {};

TEST_P(EventQueueFault, IsFound) {
  Found found;
  for (const Plan& plan : kPlans) {
    found = search(plan, GetParam(), kBounds);
    if (!found.wrong.empty()) break;
  }
  fmt::print("run {}: {}\n", found.runs, found.wrong);
  EXPECT_NE(found.wrong, "");
}

INSTANTIATE_TEST_SUITE_P(Planted, EventQueueFault,
                         testing::Values(Fault::produced_stored_relaxed, Fault::produced_loaded_relaxed,
                                         Fault::grant_stored_relaxed, Fault::grant_loaded_relaxed,
                                         Fault::epoch_stored_relaxed, Fault::epoch_loaded_relaxed,
                                         Fault::shape_stored_relaxed, Fault::shape_loaded_relaxed,
                                         Fault::grant_before_epoch),
                         [](const auto& test) { return kFaults.at(static_cast<std::size_t>(test.param)); });

}  // namespace
}  // namespace fairlead::tests
