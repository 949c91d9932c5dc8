#include "base/settings.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace fairlead::base {
namespace {

TEST(Settings, AnOptionOfACommandIsNamedAsTyped) {
  constexpr const char* kVariable = "FAIRLEAD_TEST_SETTING";
  ::setenv(kVariable, "7", 1);
  const auto given = Settings().find(kVariable);
  ASSERT_TRUE(given);
  EXPECT_EQ(given->where, kVariable);
  EXPECT_EQ(given->remedy, "or unset FAIRLEAD_TEST_SETTING");
  Settings::name_option(kVariable, "--test");
  const auto typed = Settings().find(kVariable);
  ASSERT_TRUE(typed);
  EXPECT_EQ(typed->text, "7");
  EXPECT_EQ(typed->where, "--test");
  EXPECT_EQ(typed->remedy, "--test");
  EXPECT_EQ(Settings::name_for_users(kVariable), "--test");
  EXPECT_EQ(Settings::name_for_users("FAIRLEAD_OTHER"), "FAIRLEAD_OTHER");
  ::unsetenv(kVariable);
  EXPECT_FALSE(Settings().find(kVariable));
}

}  // namespace
}  // namespace fairlead::base
