// The other side writes anything anywhere into the shared memory: each side refuses inconsistent words, and never
// leaves its segments. The memory is on the heap and of exact size, so that the address sanitizer checks too.

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "queue/event_queue.hpp"
#include "queue/queue_fixture.hpp"

namespace fairlead::queue {
namespace {

using Descriptor = Run;  // testing::Test has a Run of its own

constexpr std::uint32_t kElementBytes = 16;
constexpr std::uint64_t kFirstNumber = 1000;

// A ring of several runs in two segments, partly filled; the producer is in the middle of a run that was cut.
struct Victim {
  OwnedSegments memory{segment_bytes(kElementBytes, 12, 3)};
  Consumer consumer = make_consumer(memory.map({}), {kElementBytes, 6, kFirstNumber});
  Producer producer = make_producer(memory);
  SegmentNumber second = *memory.add(segment_bytes(kElementBytes, 8, 2));

  Victim() {
    pass(2);
    EXPECT_EQ(consumer.add({}, 3), Status::ok);
    pass(3);
    EXPECT_TRUE(consumer.attach(second, memory.map(second)));
    EXPECT_EQ(consumer.add(second, 4), Status::ok);
    pass(11);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(put_number(producer, 7));
  }

  void pass(int elements) {
    for (int i = 0; i < elements; ++i) EXPECT_TRUE(put_number(producer, 7) && get_number(consumer, 7));
  }

  Header& header() { return *reinterpret_cast<Header*>(memory.map({}).data()); }
  // The descriptors are at the end of a segment, the first one last.
  Descriptor& run(std::uint32_t segment, std::size_t from_end) {
    const auto bytes = memory.map({segment});
    return *(reinterpret_cast<Descriptor*>(bytes.data() + bytes.size()) - 1 - from_end);
  }

  bool is_inside(const std::byte* first, std::uint64_t bytes) {
    return std::ranges::any_of(std::array{0U, second.value}, [&](std::uint32_t number) {
      const auto segment = memory.map({number});
      return first >= segment.data() && first + bytes <= segment.data() + segment.size();
    });
  }

  // By atomic words: a liar may have declared its own descriptors as payload.
  static void fill(const Stretch& given) {
    for (std::size_t at = 0; at < std::size_t{given.count} * kElementBytes; at += sizeof(SharedWord)) {
      reinterpret_cast<SharedWord*>(given.first + at)->store(7, std::memory_order_relaxed);
    }
  }

  // Both sides go on; everything that they hand out must lie inside the segments.
  void go_on() {
    for (int i = 0; i < 40; ++i) {
      const auto given = producer.pnext(1 + i % 5);
      if (given.count != 0) {
        ASSERT_TRUE(is_inside(given.first, std::uint64_t{given.count} * kElementBytes));
        fill(given);
        producer.put(given.count);
      } else {
        ASSERT_TRUE(producer.status() == Status::again || producer.status() == Status::invalid);
      }
      const auto taken = consumer.get(1 + i % 3);
      if (taken.count != 0) {
        ASSERT_TRUE(is_inside(taken.first, std::uint64_t{taken.count} * kElementBytes));
      } else {
        ASSERT_TRUE(consumer.status() == Status::again || consumer.status() == Status::invalid);
      }
      if (i % 10 == 9) consumer.add(i % 20 == 9 ? SegmentNumber{0} : second, 1);
    }
  }

  // The words of header and descriptors; everything else is payload.
  std::vector<SharedWord*> words() {
    std::vector<SharedWord*> all;
    auto add_words = [&](void* from, std::size_t bytes) {
      for (std::size_t at = 0; at < bytes; at += 8)
        all.push_back(reinterpret_cast<SharedWord*>(static_cast<char*>(from) + at));
    };
    add_words(&header(), sizeof(Header));
    for (std::size_t i = 0; i < 7; ++i) add_words(&run(0, i), sizeof(Descriptor));
    for (std::size_t i = 0; i < 5; ++i) add_words(&run(second.value, i), sizeof(Descriptor));
    return all;
  }
};

TEST(Hostile, UnharmedVictimGoesOn) {
  Victim victim;
  victim.go_on();
  EXPECT_EQ(victim.producer.status(), Status::again);
  EXPECT_EQ(victim.consumer.status(), Status::again);
}

TEST(Hostile, EveryFlippedBitIsSurvived) {
  const auto words = Victim().words().size();
  for (std::size_t word = 0; word < words; ++word) {
    for (int bit = 0; bit < 64; ++bit) {
      Victim victim;
      auto& target = *victim.words()[word];
      target ^= std::uint64_t{1} << bit;
      ASSERT_NO_FATAL_FAILURE(victim.go_on()) << "word " << word << " bit " << bit;
    }
  }
}

TEST(Hostile, RandomWordsAreSurvived) {
  for (std::uint32_t seed = 1; seed <= 5000; ++seed) {
    std::mt19937_64 random(seed);
    Victim victim;
    const auto words = victim.words();
    for (auto hits = 1 + random() % 4; hits != 0; --hits) {
      auto& target = *words[random() % words.size()];
      switch (random() % 4) {
        case 0:
          target = random();
          break;
        case 1:
          target = words[random() % words.size()]->load();
          break;  // plausible, but at another place
        case 2:
          target += random() % 257 - 128;
          break;
        default:
          target = random() % 2 == 0 ? 0 : ~std::uint64_t{0};
      }
    }
    ASSERT_NO_FATAL_FAILURE(victim.go_on()) << "seed " << seed;
  }
}

TEST(Hostile, RandomWordsWhileBothSidesRunAreSurvived) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    Victim victim;
    const auto words = victim.words();
    std::jthread vandal([&] {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 2000; ++i) {
        auto& target = *words[random() % words.size()];
        const auto before = target.load(std::memory_order_relaxed);
        target.store(random() % 2 == 0 ? random() : words[random() % words.size()]->load(), std::memory_order_relaxed);
        if (random() % 2 == 0) target.store(before, std::memory_order_relaxed);
      }
    });
    for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(victim.go_on()) << "seed " << seed;
  }
}

struct Damage {
  std::string what;
  std::function<void(Victim&)> inflict;
};

Shape shape_of(const Descriptor& run) {
  return Shape::unpack(run.shape.load());
}

void every_run(Victim& victim, const std::function<void(Descriptor&)>& inflict) {
  for (std::size_t i = 0; i < 7; ++i) inflict(victim.run(0, i));
  for (std::size_t i = 0; i < 5; ++i) inflict(victim.run(victim.second.value, i));
}

Damage at_every_run(std::string what, std::function<void(Descriptor&)> inflict) {
  return {std::move(what), [=](Victim& victim) { every_run(victim, inflict); }};
}

TEST(Hostile, ProducerRefuses) {
  auto link_to = [](RunLocation next) {
    return [=](Descriptor& run) { run.shape = Shape{shape_of(run).count, next}.pack(); };
  };
  const std::vector<Damage> damages{
      {"grant far ahead", [](Victim& v) { v.header().grant += 1000; }},
      {"grant behind", [](Victim& v) { v.header().grant = kFirstNumber - 1; }},
      {"size without end", [](Victim& v) { v.header().size = ~std::uint64_t{0}; }},
      {"size of nothing", [](Victim& v) { v.header().size = 0; }},
      at_every_run("no blessing", [](Descriptor& run) { run.mark = 0; }),
      at_every_run("no next run", link_to({})),
      at_every_run("next run in an unknown segment", link_to(RunLocation::of({{9}, 64}))),
      at_every_run("next run behind the end", link_to(RunLocation::of({{0}, 1U << 30}))),
      at_every_run("next run among the elements", link_to(RunLocation::of({{0}, sizeof(Header)}))),
      at_every_run("run without elements", [](Descriptor& run) { run.shape = Shape{0, shape_of(run).next}.pack(); }),
      at_every_run("run without end", [](Descriptor& run) { run.shape = Shape{~0U, shape_of(run).next}.pack(); }),
      at_every_run("first element in an unknown segment",
                   [](Descriptor& run) { run.first = Location{{63}, 0}.pack(); }),
      at_every_run("first element in no segment",
                   [](Descriptor& run) { run.first = Location{{kSegmentsMax}, 0}.pack(); }),
      at_every_run("first element not aligned", [](Descriptor& run) { run.first += 4; }),
      at_every_run("first element behind the end", [](Descriptor& run) { run.first = Location{{0}, ~0U - 15}.pack(); }),
  };
  for (const auto& damage : damages) {
    Victim victim;
    damage.inflict(victim);
    int elements = 0;
    while (elements < 100 && put_number(victim.producer, 7)) ++elements;
    if (victim.producer.status() == Status::again) {  // full: the damage shows only when there is room
      ASSERT_NE(victim.consumer.get(), nullptr);
      put_number(victim.producer, 7);
    }
    EXPECT_LT(elements, 100) << damage.what;
    EXPECT_EQ(victim.producer.status(), Status::invalid) << damage.what;
  }
}

// The ring was cut while the producer did not poll, and the chain of pieces leads nowhere, astray or in a circle.
TEST(Hostile, ProducerRefusesABrokenChainOfPieces) {
  const std::vector<std::function<void(Descriptor & cut, Descriptor & piece)>> damages{
      [](Descriptor& cut, Descriptor&) { cut.rest = 0; },
      [](Descriptor& cut, Descriptor&) { cut.rest = RunLocation::of({{63}, 64}).word; },
      [](Descriptor& cut, Descriptor&) { cut.rest = RunLocation::of({{0}, sizeof(Header)}).word; },
      [](Descriptor& cut, Descriptor&) { cut.rest = static_cast<std::uint32_t>(cut.mark); },
      [](Descriptor&, Descriptor& piece) { piece.first += 5 * kElementBytes; },
      [](Descriptor&, Descriptor& piece) { piece.first -= 8; },
      [](Descriptor& cut, Descriptor& piece) { piece.first = cut.first.load(); },
      [](Descriptor&, Descriptor& piece) { piece.first = Location{{1}, 64}.pack(); },
      [](Descriptor& cut, Descriptor&) { cut.shape = Shape{0, shape_of(cut).next}.pack(); },
      [](Descriptor& cut, Descriptor&) { cut.shape = Shape{~0U, shape_of(cut).next}.pack(); },
  };
  for (std::size_t i = 0; i < damages.size(); ++i) {
    OwnedSegments memory{segment_bytes(kElementBytes, 16, 2)};
    auto consumer = make_consumer(memory.map({}), {kElementBytes, 8});
    auto producer = make_producer(memory);
    for (int n = 0; n < 4; ++n) ASSERT_TRUE(put_number(producer, 7));
    for (int n = 0; n < 3; ++n) ASSERT_TRUE(get_number(consumer, 7));
    ASSERT_EQ(consumer.add({}, 2),
              Status::ok);  // cuts behind the third element; the producer polls again on the eighth
    auto* end = reinterpret_cast<Descriptor*>(memory.map({}).data() + memory.map({}).size());
    damages[i](end[-1], end[-2]);
    while (put_number(producer, 7)) {
    }
    EXPECT_EQ(producer.status(), Status::invalid) << i;
  }
}

TEST(Hostile, ConsumerRefuses) {
  const std::vector<Damage> damages{
      {"produced far ahead", [](Victim& v) { v.header().produced += 1000; }},
      {"produced behind", [](Victim& v) { v.header().produced = kFirstNumber - 1; }},
      at_every_run("no blessing", [](Descriptor& run) { run.mark = 0; }),
      at_every_run("no next run", [](Descriptor& run) { run.consumer_next = 0; }),
      at_every_run("next run elsewhere", [](Descriptor& run) { run.consumer_next += 8; }),
      at_every_run("next run outside", [](Descriptor& run) { run.consumer_next += 1U << 30; }),
      at_every_run("run without elements", [](Descriptor& run) { run.consumer_count = 0; }),
      at_every_run("run without end", [](Descriptor& run) { run.consumer_count = ~std::uint64_t{0}; }),
      at_every_run("first element outside", [](Descriptor& run) { run.consumer_first += 1U << 30; }),
      at_every_run("first element not aligned", [](Descriptor& run) { run.consumer_first += 8; }),
  };
  for (const auto& damage : damages) {
    Victim victim;
    damage.inflict(victim);
    int elements = 0;
    for (; elements < 100 && victim.consumer.get() != nullptr; ++elements) put_number(victim.producer, 7);
    EXPECT_LT(elements, 100) << damage.what;
    EXPECT_EQ(victim.consumer.status(), Status::invalid) << damage.what;
  }
}

TEST(Hostile, ProducerDoesNotTakePartInADamagedQueue) {
  const std::vector<Damage> damages{
      {"mark", [](Victim& v) { v.header().mark ^= 1; }},
      {"element size 0", [](Victim& v) { v.header().element_bytes = 0; }},
      {"element size odd", [](Victim& v) { v.header().element_bytes = 17; }},
      {"element size huge", [](Victim& v) { v.header().element_bytes = std::uint64_t{1} << 33; }},
      {"first run nowhere", [](Victim& v) { v.header().first_run = 0; }},
      {"first run behind the end", [](Victim& v) { v.header().first_run = 1U << 20; }},
      at_every_run("no blessing", [](Descriptor& run) { run.mark = 0; }),
  };
  for (const auto& damage : damages) {
    Victim victim;
    damage.inflict(victim);
    const auto late = Producer::attach(victim.memory);
    ASSERT_FALSE(late.has_value()) << damage.what;
    EXPECT_EQ(late.error().status, Status::invalid);
    EXPECT_FALSE(late.error().message.empty());
  }
}

}  // namespace
}  // namespace fairlead::queue
