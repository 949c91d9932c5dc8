#pragma once
// Ends a test program whose current test does not end, and names that test. ctest, too, limits the time of a program,
// but cannot tell which of its tests hangs.

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>

namespace fairlead::tests {

class TimeLimit : public testing::EmptyTestEventListener {
 public:
  /// At most one at a time, because it handles a signal: SIGRTMAX, so that a test may have an alarm of its own.
  explicit TimeLimit(std::chrono::seconds most);
  ~TimeLimit() override;
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  void OnTestStart(const testing::TestInfo& test) override;
  void OnTestEnd(const testing::TestInfo& test) override;

 private:
  void set(std::chrono::seconds left);

  const std::chrono::seconds most_;
  timer_t timer_{};
};

}  // namespace fairlead::tests
