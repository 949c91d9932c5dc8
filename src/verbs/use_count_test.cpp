#include "verbs/use_count.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace fairlead::verbs {
namespace {

TEST(UseCount, CountsItsUsers) {
  UseCount uses;
  EXPECT_EQ(uses.add(), 0u);
  EXPECT_EQ(uses.add(), 1u);
  uses.drop();
  EXPECT_EQ(uses.count(), 1u);
  uses.drop();
}

TEST(UseCountDeathTest, ADropTooManyEndsTheProcess) {
  UseCount uses;
  uses.add();
  uses.drop();
  EXPECT_DEATH(uses.drop(), "nobody uses");
}

TEST(UseCountDeathTest, AnObjectThatIsUsedMustNotEnd) {
  const auto end_too_early = [] {
    UseCount uses;
    uses.add();
  };
  EXPECT_DEATH(end_too_early(), "ends that 1 others use");
}

TEST(Quota, TakesUpToItsBound) {
  Quota quota(2);
  EXPECT_TRUE(quota.take());
  EXPECT_TRUE(quota.take());
  EXPECT_FALSE(quota.take());
  EXPECT_EQ(quota.used(), 2u);
  quota.give();
  EXPECT_TRUE(quota.take());
  quota.give();
  quota.give();
}

}  // namespace
}  // namespace fairlead::verbs
