// The model of the event queue in a weak memory: right as it is, and wrong as soon as one order is left out. The
// second half shows that the model would notice, and that the queue carries no order it does not need.

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
                         testing::Values("WEAK_PUT", "WEAK_PRODUCED_LOOK", "WEAK_GRANT", "WEAK_GRANT_LOOK",
                                         "WEAK_EPOCH", "WEAK_EPOCH_LOOK", "WEAK_SHAPE", "WEAK_SHAPE_LOOK"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace fairlead::tests
