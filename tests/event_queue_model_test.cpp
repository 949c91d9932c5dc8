// The event queue's model under a weak memory model is correct, event by event and in batches. It fails if any memory
// order is weakened or a batch goes too far, so the queue has no unnecessary order.

#include <gtest/gtest.h>

#include <vector>

#include "tests/check_model.hpp"
#include "tests/environment.hpp"

namespace fairlead::tests {
namespace {

constexpr const char* kSingly = "";
constexpr const char* kBatches = "BATCHES";

class EventQueueModel : public testing::TestWithParam<ModelCase> {};

TEST_P(EventQueueModel, LosesRepeatsAndReordersNothing) {
  EXPECT_EQ(check_model("event_queue.pml", GetParam()), ModelOutcome::holds);
}

INSTANTIATE_TEST_SUITE_P(, EventQueueModel,
                         testing::Values(ModelCase{kSingly}, ModelCase{is_full_run() ? kBatches : "BATCHES SMALL"}),
                         [](const auto& instance) { return name_of(instance.param); });

class EventQueueFault : public testing::TestWithParam<ModelCase> {};

TEST_P(EventQueueFault, IsFound) {
  EXPECT_EQ(check_model("event_queue.pml", GetParam()), ModelOutcome::fails);
}

INSTANTIATE_TEST_SUITE_P(
    Planted, EventQueueFault,
    testing::ValuesIn(drawn<ModelCase>(
        {ModelCase{kSingly, "WEAK_PUT"}, ModelCase{kSingly, "WEAK_PRODUCED_LOOK"}, ModelCase{kSingly, "WEAK_GRANT"},
         ModelCase{kSingly, "WEAK_GRANT_LOOK"}, ModelCase{kSingly, "WEAK_EPOCH"}, ModelCase{kSingly, "WEAK_EPOCH_LOOK"},
         ModelCase{kSingly, "WEAK_SHAPE"}, ModelCase{kSingly, "WEAK_SHAPE_LOOK"}, ModelCase{kBatches, "WEAK_PUT"},
         ModelCase{kBatches, "WEAK_HAND_BACK"}, ModelCase{kBatches, "PAST_GRANT"}, ModelCase{kBatches, "PAST_LAST"}})),
    [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace fairlead::tests
