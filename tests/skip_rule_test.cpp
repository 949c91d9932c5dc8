// With FAIRLEAD_TEST_NO_SKIPS a skipped test fails, unless tests/allowed_skips.txt has its name and reason.

#include "tests/main/skip_rule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "tests/child_process.hpp"

namespace fairlead::tests {
namespace {

using testing::HasSubstr;

constexpr const char* kReason = "it was told to";

TEST(SkipRule, OneThatSkipsWhenItIsTold) {
  if (std::getenv("FAIRLEAD_TEST_SKIP_THIS") != nullptr) GTEST_SKIP() << kReason;
}

/// Runs this program again with that test alone.
Finished run_it(const std::vector<std::string>& environment) {
  std::vector<std::string> words{"env", "-u", "FAIRLEAD_TEST_NO_SKIPS", "-u", "FAIRLEAD_TEST_SKIP_LOG"};
  words.insert(words.end(), environment.begin(), environment.end());
  words.push_back(std::filesystem::read_symlink("/proc/self/exe"));
  words.push_back("--gtest_filter=SkipRule.OneThatSkipsWhenItIsTold");
  return run(words);
}

TEST(SkipRule, WhatSkipsItselfFailsWhereNothingMay) {
  EXPECT_EQ(run_it({"FAIRLEAD_TEST_NO_SKIPS=1"}).exit_code, 0);
  EXPECT_EQ(run_it({"FAIRLEAD_TEST_SKIP_THIS=1"}).exit_code, 0);
  const Finished strict = run_it({"FAIRLEAD_TEST_SKIP_THIS=1", "FAIRLEAD_TEST_NO_SKIPS=1"});
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_THAT(strict.output, HasSubstr("SkipRule.OneThatSkipsWhenItIsTold was skipped (it was told to)"));
}

TEST(SkipRule, EachSkipIsNoted) {
  const std::string log = fmt::format("{}skip_rule_test.{}", testing::TempDir(), ::getpid());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(run_it({"FAIRLEAD_TEST_SKIP_THIS=1", "FAIRLEAD_TEST_SKIP_LOG=" + log}).exit_code, 0);
  EXPECT_EQ(run_it({"FAIRLEAD_TEST_SKIP_LOG=" + log}).exit_code, 0);
  std::ifstream stream(log);
  const std::string line = "skipped SkipRule.OneThatSkipsWhenItIsTold: it was told to\n";
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>(stream), {}}), line + line);
  std::filesystem::remove(log);
}

TEST(AllowedSkips, HaveANameAndAReason) {
  const auto skips = AllowedSkips::parse("# a comment\n\nOne.Test: it cannot\nAll.*: they cannot: here\n").value();
  EXPECT_TRUE(skips.allows("One.Test", "it cannot"));
  EXPECT_FALSE(skips.allows("One.Test", "a bug"));
  EXPECT_FALSE(skips.allows("One.Test2", "it cannot"));
  EXPECT_TRUE(skips.allows("All.Tests/3", "they cannot: here"));
  EXPECT_FALSE(skips.allows("Another.Test", "they cannot: here"));
  for (const char* bad : {"One.Test\n", "One.Test: \n", ": because\n", "One.Test:because\n"})
    EXPECT_FALSE(AllowedSkips::parse(bad)) << bad;
}

TEST(AllowedSkips, OfAMissingFileAreNone) {
  EXPECT_THAT(AllowedSkips::of_file("/nonexistent").error().message, HasSubstr("/nonexistent"));
}

}  // namespace
}  // namespace fairlead::tests
