#include "qp/source_budget.hpp"

#include <gtest/gtest.h>

namespace fairlead::qp {
namespace {

using namespace std::chrono_literals;

TEST(SourceBudget, IsSpentByNonsenseUntilTheSecondIsOver) {
  SourceBudget budget;
  const auto source = *base::SocketAddress::from_ip("10.0.0.7", 5),
             same_host = *base::SocketAddress::from_ip("10.0.0.7", 6);
  const base::Instant start{1h};
  for (std::uint32_t i = 0; i < SourceBudget::kWrongMost; ++i) {
    EXPECT_FALSE(budget.is_spent(source, start));
    budget.note_wrong(source, start + std::chrono::microseconds(i));
  }
  EXPECT_TRUE(budget.is_spent(source, start + 900ms));
  EXPECT_TRUE(budget.is_spent(same_host, start + 900ms)) << "another port";
  EXPECT_FALSE(budget.is_spent(source, start + 1s));
  budget.note_wrong(source, start + 1s);
  EXPECT_FALSE(budget.is_spent(source, start + 1s));
}

}  // namespace
}  // namespace fairlead::qp
