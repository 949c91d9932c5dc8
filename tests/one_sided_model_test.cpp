// The model of one-sided access inside a host, under a weak memory model. It holds in each variant, and fails if any
// memory order, check or wait is removed.

#include <gtest/gtest.h>

#include <vector>

#include "tests/check_model.hpp"
#include "tests/environment.hpp"

namespace fairlead::tests {
namespace {

class OneSidedModel : public testing::TestWithParam<ModelCase> {};

TEST_P(OneSidedModel, TouchesNothingThatWasTakenBack) {
  EXPECT_EQ(check_model("one_sided.pml", GetParam()), ModelOutcome::holds);
}

// In the small run only the planted faults use LIAR.
INSTANTIATE_TEST_SUITE_P(Parts, OneSidedModel,
                         testing::ValuesIn(is_full_run() ? std::vector<ModelCase>{{},
                                                                                  {.parts = "FENCED"},
                                                                                  {.parts = "ONE_USE"},
                                                                                  {.parts = "ONE_USE BY_CALLS"},
                                                                                  {.parts = "ONE_USE BY_CALLS LIAR"}}
                                                         : std::vector<ModelCase>{{},
                                                                                  {.parts = "FENCED"},
                                                                                  {.parts = "ONE_USE"},
                                                                                  {.parts = "ONE_USE BY_CALLS SMALL"}}),
                         [](const auto& instance) { return name_of(instance.param); });

class OneSidedFault : public testing::TestWithParam<ModelCase> {};

TEST_P(OneSidedFault, IsFound) {
  EXPECT_EQ(check_model("one_sided.pml", GetParam()), ModelOutcome::fails);
}

constexpr const char* kRegion = "";
constexpr const char* kFenced = "FENCED";
constexpr const char* kOneUse = "ONE_USE";
constexpr const char* kLiar = "ONE_USE BY_CALLS LIAR";

INSTANTIATE_TEST_SUITE_P(
    Planted, OneSidedFault,
    testing::ValuesIn(drawn<ModelCase>(
        {// the initiator
         ModelCase{kRegion, "LOOK_BEFORE_ENTRY"}, ModelCase{kRegion, "LEAVE_BEFORE_COPY"},
         ModelCase{kRegion, "WEAK_LOOK"}, ModelCase{kRegion, "WEAK_ENTRY"}, ModelCase{kRegion, "WEAK_EXIT"},
         ModelCase{kRegion, "NO_TURN"}, ModelCase{kFenced, "NO_FENCE"},
         // the owner
         ModelCase{kRegion, "WEAK_PUBLICATION"}, ModelCase{kRegion, "WEAK_WATCH"}, ModelCase{kRegion, "NO_BARRIER"},
         ModelCase{kRegion, "REUSE_BEFORE_WAIT"}, ModelCase{kRegion, "WAIT_FOR_THE_DEAD"},
         ModelCase{kRegion, "COUNT_STRANGERS"}, ModelCase{kFenced, "NO_BARRIER"},
         // one-shot regions
         ModelCase{kOneUse, "WEAK_LOOK"}, ModelCase{kOneUse, "WEAK_TELLING"}, ModelCase{kOneUse, "TELL_AFTER_LEAVING"},
         ModelCase{kOneUse, "CLAIM_WITHOUT_SWAP"}, ModelCase{kOneUse, "CLAIM_ANY_KEY"},
         ModelCase{kOneUse, "CANCEL_WHAT_IS_TAKEN"},
         // outside the arena, where the owner does not trust the table
         ModelCase{kLiar, "BELIEVE_THE_TABLE"}, ModelCase{kLiar, "CLOSE_WITHOUT_LOOK"}, ModelCase{kLiar, "NO_BARRIER"},
         ModelCase{kLiar, "NO_FENCE"}})),
    [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace fairlead::tests
