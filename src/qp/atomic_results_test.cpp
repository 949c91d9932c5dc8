#include "qp/atomic_results.hpp"

#include <gtest/gtest.h>

namespace fairlead::qp {
namespace {

TEST(AtomicResults, KeepTheLastOnes) {
  AtomicResults results;
  EXPECT_FALSE(results.find({0}));
  for (std::uint32_t i = 0; i <= AtomicResults::kKept; ++i) results.remember({i}, i * 10);
  EXPECT_FALSE(results.find({0}));
  EXPECT_EQ(results.find({1}), 10u);
  EXPECT_EQ(results.find({AtomicResults::kKept}), AtomicResults::kKept * 10);
}

}  // namespace
}  // namespace fairlead::qp
