// The task queue's model under a weak memory model, with its three writers. It fails if any memory order is weakened,
// or if the consumer takes the firewall element.

#include <gtest/gtest.h>

#include <string>

#include "tests/check_model.hpp"

namespace fairlead::tests {
namespace {

TEST(TaskQueueModel, LosesRepeatsAndTearsNothing) {
  EXPECT_EQ(check_model("task_queue.pml", {}), ModelOutcome::holds);
}

class WeakTaskQueue : public testing::TestWithParam<const char*> {};

TEST_P(WeakTaskQueue, IsFound) {
  EXPECT_EQ(check_model("task_queue.pml", {.fault = GetParam()}), ModelOutcome::fails);
}

INSTANTIATE_TEST_SUITE_P(TaskQueueModel, WeakTaskQueue,
                         testing::ValuesIn(drawn<const char*>({"WEAK_LINK", "WEAK_LINK_LOOK", "WEAK_COMPLETE",
                                                               "WEAK_STATE_LOOK", "WEAK_BACK", "WEAK_BACK_LOOK",
                                                               "TAKE_LAST"})),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace fairlead::tests
