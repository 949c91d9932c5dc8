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

// Which of them a program printed, people know.
TEST(Explain, ANumberIsTakenForEverythingThatItMayBe) {
  EXPECT_THAT(*explain("12"),
              AllOf(HasSubstr("no_memory (ENOMEM"), HasSubstr("IBV_WC_RETRY_EXC_ERR (completion "
                                                              "status 12): the peer did not acknowledge")));
  EXPECT_THAT(*explain("0x2"), HasSubstr("no_ack (vendor_err 2): "));
  EXPECT_THAT(*explain("10"), HasSubstr("IBV_EVENT_PORT_ERR"));
}

TEST(Explain, WordsOfVerbsAreKnownInFullAndInShort) {
  for (const char* word : {"IBV_WC_RETRY_EXC_ERR", "retry_exc_err", "RETRY_EXC_ERR"})
    EXPECT_THAT(*explain(word), StartsWith("IBV_WC_RETRY_EXC_ERR (completion status 12): ")) << word;
  EXPECT_THAT(*explain("key_unknown"), StartsWith("key_unknown (vendor_err 10): "));
}

TEST(Explain, SettingsAreKnownByNameAndVariable) {
  for (const char* word : {"give_up_after", "FAIRLEAD_GIVE_UP_AFTER"})
    EXPECT_THAT(*explain(word), StartsWith("give_up_after (a setting, FAIRLEAD_GIVE_UP_AFTER): ")) << word;
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
