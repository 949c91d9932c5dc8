#include "observe/canary.hpp"

#include <gtest/gtest.h>

namespace fairlead::observe {
namespace {

TEST(Canary, TellsNothingForOneProcessorAgainstItself) {
  EXPECT_EQ(line_transfer_time(0, 0), base::Duration::zero());
}

TEST(Canary, TellsNothingForAProcessorThatIsNotOurs) {
  EXPECT_EQ(line_transfer_time(0, 1 << 20), base::Duration::zero());
  EXPECT_EQ(line_transfer_time(-1, 0), base::Duration::zero());
}

}  // namespace
}  // namespace fairlead::observe
