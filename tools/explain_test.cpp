#include "tools/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace fairlead::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Explain, EveryFormOfAStatusNamesTheSame) {
  for (const char* word : {"stale", "STALE", "ENOENT", "enoent", "2", "-2"}) {
    const auto text = explain(word);
    ASSERT_TRUE(text) << word;
    EXPECT_THAT(*text, StartsWith("stale (ENOENT, -2): ")) << word;
  }
}

TEST(Explain, AnErrnoOfTwoStatusesTellsBoth) {
  const auto text = explain("ETIMEDOUT");
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, AllOf(HasSubstr("timed_out ("), HasSubstr("silent (")));
}

TEST(Explain, TextsOfTheLibraryAreUnderstood) {
  for (int i = 0; i <= static_cast<int>(Status::system); ++i) {
    const auto status = static_cast<Status>(i);
    EXPECT_TRUE(explain(to_string(status))) << to_string(status);
    EXPECT_TRUE(explain(std::to_string(-to_errno(status)))) << to_string(status);
  }
}

TEST(Explain, CountersAreKnownByTheirNameAndItsLastWord) {
  EXPECT_THAT(*explain("link.resends_fast"), StartsWith("link.resends_fast (a counter): "));
  EXPECT_THAT(*explain("replayed"), StartsWith("link.refused.replayed (a counter): "));
  EXPECT_THAT(*explain("unknown token"), StartsWith("link.refused.unknown_token (a counter): "));
}

TEST(Explain, AnythingElseIsAnErrorThatNamesIt) {
  for (const char* word : {"", "nonsense", "-", "99999", "--2"}) {
    const auto text = explain(word);
    ASSERT_FALSE(text) << word;
    EXPECT_THAT(text.error().message, HasSubstr(fmt::format("'{}'", word)));
  }
}

TEST(Explain, AMalformedDescriptorIsAnError) {
  const auto text = explain(std::string(128, 'f'));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().status, Status::invalid);
}

}  // namespace
}  // namespace fairlead::tools
