// The event queue's model under a weak memory model is correct. It fails if any memory order is weakened, so the queue
// has no unnecessary order.

#include <gtest/gtest.h>

#include <string>

#include "tests/check_model.hpp"

namespace fairlead::tests {
namespace {

TEST(EventQueueModel, LosesRepeatsAndReordersNothing) {
  EXPECT_EQ(check_model("event_queue.pml", {}), ModelOutcome::holds);
}

class WeakOrder : public testing::TestWithParam<const char*> {};

TEST_P(WeakOrder, IsFound) {
  EXPECT_EQ(check_model("event_queue.pml", {.fault = GetParam()}), ModelOutcome::fails);
}

INSTANTIATE_TEST_SUITE_P(EventQueueModel, WeakOrder,
                         testing::ValuesIn(drawn<const char*>({"WEAK_PUT", "WEAK_PRODUCED_LOOK", "WEAK_GRANT",
                                                               "WEAK_GRANT_LOOK", "WEAK_EPOCH", "WEAK_EPOCH_LOOK",
                                                               "WEAK_SHAPE", "WEAK_SHAPE_LOOK"})),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace fairlead::tests
