#include <fairlead/error.hpp>

#include <gtest/gtest.h>

namespace fairlead {
namespace {

TEST(ValueOrExit, IsTheValueOrTheEndWithTheErrorsLine) {
  EXPECT_EQ(value_or_exit(Result<int>(7)), 7);
  value_or_exit(Result<>());
  const Result<int> failed = std::unexpected(Error{Status::refused, 0, "nobody listens: start the server"});
  EXPECT_EXIT(value_or_exit(failed), testing::ExitedWithCode(1), "nobody listens: start the server\n");
  EXPECT_EXIT(value_or_exit(Result<>(std::unexpected(failed.error()))), testing::ExitedWithCode(1), "nobody listens");
}

}  // namespace
}  // namespace fairlead
