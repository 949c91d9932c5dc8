#include "base/similar.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace fairlead::base {
namespace {

constexpr std::array<std::string_view, 3> kKnown{"canceled", "timed_out", "give_up_after"};

TEST(MostSimilar, FindsTheNameThatWasMeant) {
  EXPECT_EQ(most_similar("cancelled", kKnown, 9), "canceled");
  EXPECT_EQ(most_similar("timeout", kKnown, 7), "timed_out");
  EXPECT_EQ(most_similar("giveup", kKnown, 6), "give_up_after") << "abbreviated";
}

TEST(MostSimilar, FindsNothingForAnythingElse) {
  EXPECT_EQ(most_similar("frobnicate", kKnown, 10), std::nullopt);
  EXPECT_EQ(most_similar("", kKnown, 0), std::nullopt);
  EXPECT_EQ(most_similar("x", kKnown, 1), std::nullopt);
  EXPECT_EQ(most_similar("canceled", {}, 8), std::nullopt);
  EXPECT_EQ(most_similar(std::string(65, 'c'), kKnown, 1000), std::nullopt) << "too long to compare";
}

}  // namespace
}  // namespace fairlead::base
