#include "base/roll.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/process_mark.hpp"

namespace fairlead::base {
namespace {

using testing::ElementsAre;

TEST(Roll, KnowsWhoHasEnteredAndNotLeft) {
  Roll<int> roll;
  int one = 1, two = 2, three = 3;
  for (int* each : {&one, &two, &three}) roll.enter(*each);
  roll.leave(two);
  roll.leave(two);
  std::vector<int> seen;
  roll.for_each([&](int each) { seen.push_back(each); });
  EXPECT_THAT(seen, ElementsAre(1, 3));
  roll.lock();
  EXPECT_THAT(roll.locked_all(), ElementsAre(&one, &three));
  roll.unlock();
}

TEST(Roll, OfAProcessIsEmptyInAChildThoughItWasLocked) {
  static constinit OfProcess<Roll<int>> roll;
  int one = 1;
  roll->enter(one);
  roll->lock();
  const pid_t child = ::fork();
  if (child == 0) {
    int count = 0;
    roll->for_each([&](int) { ++count; });
    ::_exit(count);
  }
  roll->unlock();
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(roll->locked_all(), ElementsAre(&one));
}

}  // namespace
}  // namespace fairlead::base
