#pragma once
// Handles tests that skip themselves. With FAIRLEAD_TEST_NO_SKIPS=1, which CI sets, such a test fails unless it is
// permitted (allowed_skips.hpp). FAIRLEAD_TEST_SKIP_LOG names a file that gets a line for each skip, also from programs
// that ctest runs as one test.

#include <string>

#include <gtest/gtest.h>

#include "tests/main/allowed_skips.hpp"

namespace fairlead::tests {

class SkipRule : public testing::EmptyTestEventListener {
 public:
  SkipRule(AllowedSkips allowed, bool is_strict, std::string log);

  void OnTestEnd(const testing::TestInfo& test) override;
  void OnTestSuiteEnd(const testing::TestSuite& suite) override;

 private:
  void judge(const std::string& test, const testing::TestResult& result) const;
  void note(const std::string& test, const std::string& reason, bool is_allowed) const;

  AllowedSkips allowed_;
  bool is_strict_;
  std::string log_;
};

}  // namespace fairlead::tests
