// The model of the event queue in a weak memory: right as it is, and wrong as soon as one order is left out. The
// second half shows that the model would notice, and that the queue carries no order it does not need.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

namespace fairlead {
namespace {

constexpr int kHolds = 0, kFails = 1;

int check_model(const std::string& define) {
  const std::string folder = FAIRLEAD_SOURCE_FOLDER "/tests/models";
  const int outcome = std::system(("'" + folder + "/run.sh' '" + folder + "/event_queue.pml' " + define).c_str());
  return WIFEXITED(outcome) ? WEXITSTATUS(outcome) : -1;
}

TEST(EventQueueModel, LosesRepeatsAndReordersNothing) {
  EXPECT_EQ(check_model(""), kHolds);
}

class WeakOrder : public testing::TestWithParam<const char*> {};

TEST_P(WeakOrder, IsFound) {
  EXPECT_EQ(check_model(GetParam()), kFails);
}

INSTANTIATE_TEST_SUITE_P(EventQueueModel, WeakOrder,
                         testing::Values("WEAK_PUT", "WEAK_PRODUCED_LOOK", "WEAK_GRANT", "WEAK_GRANT_LOOK",
                                         "WEAK_EPOCH", "WEAK_EPOCH_LOOK", "WEAK_SHAPE", "WEAK_SHAPE_LOOK"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace fairlead
