// A test that hangs ends its program and is named.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "tests/child_process.hpp"
#include "tests/main/time_limit.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(TimeLimit, OneThatHangsWhenItIsTold) {
  while (std::getenv("FAIRLEAD_TEST_HANG") != nullptr) ::pause();
}

/// Runs that test alone, in this program again.
Finished run_limited(const std::vector<std::string>& environment) {
  std::vector<std::string> words{"env"};
  words.insert(words.end(), environment.begin(), environment.end());
  words.push_back(std::filesystem::read_symlink("/proc/self/exe"));
  words.push_back("--gtest_filter=TimeLimit.OneThatHangsWhenItIsTold");
  return run(words);
}

TEST(TimeLimit, ATestThatHangsIsNamed) {
  const Finished ended = run_limited({"FAIRLEAD_TEST_SECONDS=1"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.error_output, Not(HasSubstr("has not ended")));
  const Finished hung = run_limited({"FAIRLEAD_TEST_HANG=1", "FAIRLEAD_TEST_SECONDS=1"});
  EXPECT_NE(hung.exit_code, 0);
  EXPECT_THAT(hung.error_output, HasSubstr("TimeLimit.OneThatHangsWhenItIsTold has not ended within 1 s"));
}

// Tests that wait for something set an alarm.
TEST(TimeLimitDeathTest, AnAlarmOfTheTestIsItsOwn) {
  const auto alarmed = [] {
    TimeLimit limit(1min);
    limit.OnTestStart(*testing::UnitTest::GetInstance()->current_test_info());
    ::raise(SIGALRM);
  };
  EXPECT_EXIT(alarmed(), testing::KilledBySignal(SIGALRM), "^$");
}

}  // namespace
}  // namespace fairlead::tests
