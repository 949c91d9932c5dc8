#pragma once
// Ends a test program whose current test does not end, and names that test. ctest, too, limits the time of a program,
// but cannot tell which of its tests hangs.

#include <gtest/gtest.h>

namespace fairlead::tests {

class TimeLimit : public testing::EmptyTestEventListener {
 public:
  /// At most one at a time, because it handles SIGALRM.
  explicit TimeLimit(unsigned seconds);

  void OnTestStart(const testing::TestInfo& test) override;
  void OnTestEnd(const testing::TestInfo& test) override;

 private:
  const unsigned seconds_;
};

}  // namespace fairlead::tests
