// A port goes down and comes up with its network interface, as an unmodified Debian program sees it.

#include <gtest/gtest.h>

#include "tests/two_namespaces.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using Words = TwoNamespaces::Words;

TEST(PortEvents, FollowTheInterface) {
  if (run({"sh", "-c", "command -v ibv_asyncwatch"}, 10s).exit_code != 0) GTEST_SKIP() << "ibv_asyncwatch is missing";
  TwoNamespaces two;
  if (const auto fault = two.set_up()) GTEST_SKIP() << *fault;
  ChildProcess watch(two.enter_first({FAIRLEAD_COMMAND, "run", "--", "stdbuf", "-oL", "ibv_asyncwatch"}));
  ASSERT_TRUE(watch.wait_for_text("async event FD", 20s)) << watch.output() << watch.error_output();
  const auto change = [&](const Words& words) {
    const Finished finished = run(two.enter_first(words), 20s);
    ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  };
  change({"ip", "link", "set", "fl0", "down"});
  EXPECT_TRUE(watch.wait_for_text("IBV_EVENT_PORT_ERR", 20s)) << watch.output();
  change({"ip", "link", "set", "fl0", "up"});
  EXPECT_TRUE(watch.wait_for_text("IBV_EVENT_PORT_ACTIVE", 20s)) << watch.output();
  change({"ip", "address", "delete", "10.77.0.1/24", "dev", "fl0"});
  EXPECT_TRUE(watch.wait_for_text("IBV_EVENT_GID_CHANGE", 20s)) << watch.output();
}

}  // namespace
}  // namespace fairlead::tests
