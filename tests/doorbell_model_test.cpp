// The doorbell's model under a weak memory model loses no wake-up. It loses one if any check, fence or memory order is
// removed.

#include <gtest/gtest.h>

#include <array>

#include "tests/check_model.hpp"
#include "tests/environment.hpp"

namespace fairlead::tests {
namespace {

class DoorbellModel : public testing::TestWithParam<ModelCase> {};

TEST_P(DoorbellModel, LosesNoWakeUp) {
  EXPECT_EQ(check_model("doorbell.pml", GetParam()), ModelOutcome::holds);
}

constexpr std::array kWholeDoorbell{ModelCase{}, ModelCase{.parts = "FENCED"}, ModelCase{.parts = "POLLER"},
                                    ModelCase{.parts = "MORTAL"}};
constexpr std::array kSmallDoorbell{ModelCase{.parts = "SMALL"}, ModelCase{.parts = "FENCED"},
                                    ModelCase{.parts = "POLLER"}, ModelCase{.parts = "MORTAL ALONE"}};

INSTANTIATE_TEST_SUITE_P(Parts, DoorbellModel, testing::ValuesIn(is_full_run() ? kWholeDoorbell : kSmallDoorbell),
                         [](const auto& instance) { return name_of(instance.param); });

class DoorbellFault : public testing::TestWithParam<ModelCase> {};

TEST_P(DoorbellFault, IsFound) {
  EXPECT_EQ(check_model("doorbell.pml", GetParam()), ModelOutcome::fails);
}

INSTANTIATE_TEST_SUITE_P(Planted, DoorbellFault,
                         testing::ValuesIn(drawn<ModelCase>(
                             {// the producer
                              ModelCase{.fault = "LOOK_BEFORE_WRITING"}, ModelCase{.fault = "WEAK_BITS"},
                              ModelCase{.fault = "WEAK_RING"}, ModelCase{.fault = "FLAG_CLEARED_TOO_LATE"},
                              ModelCase{"FENCED", "NO_FENCE"}, ModelCase{"MORTAL ALONE", "SUMMARY_ONCE"},
                              // the consumer
                              ModelCase{.fault = "BITS_BEFORE_SUMMARY"}, ModelCase{.fault = "NO_BARRIER"},
                              ModelCase{.fault = "NO_FENCE_AFTER_ANNOUNCING"}, ModelCase{.fault = "NO_LOOK_AT_RINGS"},
                              ModelCase{.fault = "NO_SECOND_LOOK"}, ModelCase{.fault = "ANNOUNCE_LATE"},
                              ModelCase{.fault = "UNWATCH_LATE"}, ModelCase{.fault = "DRAIN_LATE"},
                              ModelCase{"POLLER", "NO_ROUSE"}, ModelCase{"MORTAL", "DEATH_UNHEARD"}})),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace fairlead::tests
