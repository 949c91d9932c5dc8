// A port goes down and comes up with its network interface, as an unmodified Debian program sees it.

#include <gtest/gtest.h>

#include "tests/two_namespaces.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using Words = TwoNamespaces::Words;

TEST(PortEvents, FollowTheInterface) {
  if (!is_installed("ibv_asyncwatch")) GTEST_SKIP() << "ibv_asyncwatch is missing";
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

// A deleted interface is a device that was removed: programs of libibverbs and of librdmacm are told. Deleting one end
// of the pair deletes both.
TEST(PortEvents, TellOfARemovedDevice) {
  for (const char* program : {"ibv_asyncwatch", "rping"}) {
    if (!is_installed(program)) GTEST_SKIP() << program << " is missing";
  }
  TwoNamespaces two;
  if (const auto fault = two.set_up()) GTEST_SKIP() << *fault;
  const Words device{FAIRLEAD_COMMAND, "run", "--", "stdbuf", "-oL"};
  const auto program = [&](Words words) {
    words.insert(words.begin(), device.begin(), device.end());
    return words;
  };
  ChildProcess watch(two.enter_first(program({"ibv_asyncwatch"})));
  ASSERT_TRUE(watch.wait_for_text("async event FD", 20s)) << watch.output() << watch.error_output();
  ChildProcess server(two.enter_first(program({"rping", "-s", "-v", "-a", "10.77.0.1"})));
  ChildProcess client(two.enter_second(
      program({"sh", "-c", "for i in $(seq 200); do rping -c -v -a 10.77.0.1 && exit; sleep 0.1; done"})));
  ASSERT_TRUE(server.wait_for_text("server ping data", 40s)) << server.error_output() << client.error_output();
  const Finished gone = run(two.enter_first({"ip", "link", "delete", "fl0"}), 20s);
  ASSERT_EQ(gone.exit_code, 0) << gone.error_output;
  EXPECT_TRUE(watch.wait_for_text("IBV_EVENT_DEVICE_FATAL", 20s)) << watch.output();
  EXPECT_TRUE(server.wait_for_text("device removal", 20s)) << server.error_output();
  EXPECT_TRUE(client.wait_for_text("device removal", 20s)) << client.error_output();
}

}  // namespace
}  // namespace fairlead::tests
