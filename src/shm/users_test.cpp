#include "shm/users.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace fairlead::shm {
namespace {

TEST(Users, ANumberStandsForSeveralUnlessAllAreMapped) {
  EXPECT_FALSE(Users::shared_number("         0          0 4294967295\n", 65534));
  EXPECT_FALSE(Users::shared_number("0 0 1000\n1000 1000 4294966295\n", 65534)) << "in two parts";
  EXPECT_EQ(Users::shared_number("0 1000 1\n", 65534), 65534u);
  EXPECT_EQ(Users::shared_number("0 0 65536\n", 65533), 65533u);
  EXPECT_EQ(Users::shared_number("", 65534), 65534u) << "not mapped yet, or not to be seen";
}

TEST(Users, WeAreOurOwn) {
  const Users users;
  EXPECT_TRUE(users.is_own({.user = ::geteuid()}) || ::geteuid() == 65534);
  EXPECT_FALSE(users.is_own({.user = ::geteuid() + 1}));
  EXPECT_FALSE(users.is_own({}));
}

}  // namespace
}  // namespace fairlead::shm
