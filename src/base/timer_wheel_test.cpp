#include "base/timer_wheel.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <set>
#include <vector>

namespace fairlead::base {
namespace {

using namespace std::chrono_literals;
using At = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

struct Thing {
  At due{};
  TimerWheelHook hook;
};
using Wheel = TimerWheel<Thing, &Thing::hook, At, &Thing::due>;

TEST(TimerWheel, IsEmptyAndNeverDueAtFirst) {
  Wheel wheel;
  EXPECT_TRUE(wheel.is_empty());
  EXPECT_EQ(wheel.earliest(), At::max());
  EXPECT_EQ(wheel.take_due(At(1h)), nullptr);
  Thing thing;
  wheel.remove(thing);
  EXPECT_TRUE(wheel.is_empty());
}

TEST(TimerWheel, TakesNoneBeforeItsTimeAndAllThen) {
  for (const auto start : {0ns, 1ns, 987'654'321'987ns}) {
    for (const auto after : {0ns, 1ns, 8191ns, 8192ns, 1'000'000ns, 5'000'000'000ns, 90'000'000'000'000'000ns}) {
      Wheel wheel;
      EXPECT_EQ(wheel.take_due(At(start)), nullptr);
      Thing thing{.due = At(start + after), .hook = {}};
      wheel.add(thing);
      EXPECT_FALSE(wheel.is_empty());
      if (after > 0ns) {
        EXPECT_EQ(wheel.take_due(thing.due - 1ns), nullptr);
      }
      EXPECT_LE(wheel.earliest(), thing.due);
      EXPECT_EQ(wheel.take_due(thing.due), &thing);
      EXPECT_TRUE(wheel.is_empty());
      EXPECT_EQ(wheel.take_due(At::max()), nullptr);
    }
  }
}

// A caller that looks again at each time returned is never late, and does not loop for ever.
TEST(TimerWheel, SaysWhenToLookAgain) {
  Wheel wheel;
  Thing thing{.due = At(1000h + 123'457ns), .hook = {}};
  EXPECT_EQ(wheel.take_due(At(1000h - 777s)), nullptr);
  wheel.add(thing);
  int looks = 0;
  for (Thing* taken = nullptr; taken == nullptr; ++looks) {
    ASSERT_LT(looks, 20);
    const At at = wheel.earliest();
    ASSERT_LE(at, thing.due);
    taken = wheel.take_due(at);
    if (taken != nullptr) {
      EXPECT_EQ(at, thing.due);
    }
  }
}

TEST(TimerWheel, AgreesWithASortedSet) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    Wheel wheel;
    std::multiset<std::pair<At, Thing*>> model;
    std::vector<Thing> things(500);
    At now(std::chrono::nanoseconds(random() >> (random() % 40 + 8)));
    wheel.take_due(now);
    for (int step = 0; step < 20'000; ++step) {
      Thing& thing = things[random() % things.size()];
      if (thing.hook.is_linked()) {
        wheel.remove(thing);
        model.erase({thing.due, &thing});
      } else if (random() % 3 != 0) {
        thing.due = now + std::chrono::nanoseconds(random() >> (random() % 50 + 14)) - 1us;
        wheel.add(thing);
        model.insert({thing.due, &thing});
      }
      ASSERT_EQ(wheel.is_empty(), model.empty());
      if (random() % 4 != 0) continue;
      now += std::chrono::nanoseconds(random() >> (random() % 44 + 20));
      if (random() % 2 == 0 && !model.empty()) now = std::max(now, wheel.earliest());
      At before = At::min();
      while (Thing* const taken = wheel.take_due(now)) {
        ASSERT_LE(before, taken->due);
        before = taken->due;
        ASSERT_LE(taken->due, now);
        ASSERT_EQ(model.erase({taken->due, taken}), 1U);
      }
      ASSERT_TRUE(model.empty() || model.begin()->first > now);
      if (!model.empty()) {
        ASSERT_LE(wheel.earliest(), model.begin()->first);
      }
      if (!model.empty()) {
        ASSERT_GT(wheel.earliest(), now) << "who looks again would not rest";
      }
    }
    for (Thing& thing : things) wheel.remove(thing);
  }
}

}  // namespace
}  // namespace fairlead::base
