// main() of all test programs.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/main/skip_rule.hpp"
#include "tests/main/thread_sanitizer.hpp"
#include "tests/main/time_limit.hpp"

namespace {

constexpr auto kTestMost = std::chrono::seconds(240);  // a busy processor and a sanitizer included

std::string text_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

}  // namespace

int main(int count, char** words) {
  using namespace fairlead::tests;
  testing::InitGoogleTest(&count, words);
  auto allowed = AllowedSkips::of_file(FAIRLEAD_SOURCE_FOLDER "/tests/allowed_skips.txt");
  if (!allowed) {
    fmt::print(stderr, "{}\n", allowed.error().message);
    return 2;
  }
  auto rule = std::make_unique<SkipRule>(std::move(*allowed), text_of("FAIRLEAD_TEST_NO_SKIPS") == "1",
                                         text_of("FAIRLEAD_TEST_SKIP_LOG"));
  testing::UnitTest::GetInstance()->listeners().Append(rule.release());
  const std::string seconds = text_of("FAIRLEAD_TEST_SECONDS");
  auto limit = std::make_unique<TimeLimit>(seconds.empty() ? kTestMost : std::chrono::seconds(std::stoul(seconds)));
  testing::UnitTest::GetInstance()->listeners().Append(limit.release());
  stop_sanitizers_thread();
  return RUN_ALL_TESTS();
}
