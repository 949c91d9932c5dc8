// The time that an engine takes for its farewell if no peer ever answers.

#include "embedded/goodbye.hpp"

#include <gtest/gtest.h>

namespace fairlead::embedded {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Spent {
  int rounds = 0;
  base::Duration time{};
};

Spent spend(Goodbye goodbye) {
  Spent spent;
  for (; goodbye.has_round(); ++spent.rounds) spent.time += goodbye.next_pause();
  return spent;
}

TEST(Goodbye, AnEngineThatEndsWaitsHalfAMillisecondAtMost) {
  const Spent spent = spend(Goodbye::brief());
  EXPECT_LE(spent.time, microseconds(500));
  EXPECT_GE(spent.rounds, 5) << "some may be lost";
}

TEST(Goodbye, ARankWaitsForOthersThatDoNotRun) {
  const Spent spent = spend(Goodbye::patient());
  EXPECT_GE(spent.time, milliseconds(50));
  EXPECT_LE(spent.time, milliseconds(52));
}

}  // namespace
}  // namespace fairlead::embedded
