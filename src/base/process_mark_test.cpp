#include "base/process_mark.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <string>

#include "base/child_for_tests.hpp"

namespace fairlead::base {
namespace {

std::string said_at_fork;

TEST(ProcessMark, ACopyInAChildIsInheritedAndWhatTheChildMakesIsNot) {
  const ProcessMark mark;
  EXPECT_FALSE(mark.is_inherited());
  EXPECT_EQ(exit_of_child([&] {
              if (!mark.is_inherited()) return 1;
              const ProcessMark own;
              if (own.is_inherited()) return 2;
              return exit_of_child([&] { return mark.is_inherited() && own.is_inherited() ? 0 : 1; });
            }),
            0);
  EXPECT_FALSE(mark.is_inherited());
}

TEST(ProcessMark, StateOfTheProcessIsAnewInAChildThoughItsLockWasHeld) {
  struct State {
    std::mutex mutex;
    int value = 1;
  };
  static constinit OfProcess<State> state;
  state->value = 2;
  const std::scoped_lock held(state->mutex);
  EXPECT_EQ(exit_of_child([] {
              const std::scoped_lock lock(state->mutex);
              return state->value;
            }),
            1);
  EXPECT_EQ(state->value, 2);
}

TEST(ProcessMark, CallsAtForkSurroundItAndMarksAreInheritedBefore) {
  static const ProcessMark mark;
  at_fork({.before = [] { said_at_fork += "before "; },
           .in_parent = [] { said_at_fork += "parent "; },
           .in_child = [] { said_at_fork += mark.is_inherited() ? "child" : "too early"; }});
  said_at_fork.clear();
  EXPECT_EQ(exit_of_child([] { return said_at_fork == "before child" ? 0 : 1; }), 0);
  EXPECT_EQ(said_at_fork, "before parent ");
}

}  // namespace
}  // namespace fairlead::base
