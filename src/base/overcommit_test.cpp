#include "base/overcommit.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace fairlead::base {
namespace {

TEST(Overcommit, IsStrictInModeTwo) {
  std::string file = ::testing::TempDir() + "overcommit_XXXXXX";
  const int made = ::mkstemp(file.data());
  ASSERT_GE(made, 0);
  ::close(made);
  for (const auto& [text, is_strict] : {std::pair{"0\n", false}, {"1\n", false}, {"2\n", true}, {"", false}}) {
    std::ofstream(file) << text;
    EXPECT_EQ(is_memory_strict(file.c_str()), is_strict) << text;
  }
  ::unlink(file.c_str());
  EXPECT_FALSE(is_memory_strict(file.c_str()));
}

}  // namespace
}  // namespace fairlead::base
