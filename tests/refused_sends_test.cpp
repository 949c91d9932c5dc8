// The own host refuses sends, in network namespaces of the test: datagrams exceed the MTU of a cable's far end, or a
// firewall drops outgoing datagrams. The sender treats both as losses and does not retry without end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "tests/child_process.hpp"
#include "tests/two_namespaces.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr auto kRefusedAtMost = 60s;

class RefusedSends : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto fault = two_.set_up()) GTEST_SKIP() << *fault;
  }
  /// Transfers from the first namespace to a server in the second.
  Finished transfer() {
    ChildProcess server(
        two_.enter_second({FAIRLEAD_COMMAND, "bulkping", "server", "--address", "10.77.0.2", "--json"}));
    EXPECT_TRUE(server.wait_for_text("serving at", 20s)) << server.error_output();
    Finished client = run(two_.enter_first({FAIRLEAD_COMMAND, "bulkping", "client", "--server", "10.77.0.2", "--json",
                                            "--loops", "3", "--bulk-size", "1M"}),
                          kRefusedAtMost);
    server.send_signal(SIGINT);
    EXPECT_EQ(server.wait(20s), 0) << server.error_output();
    return client;
  }
  /// Returns the client's counters. Checks that refused sends were few.
  static Json counters_of(const Finished& client) {
    EXPECT_EQ(client.exit_code, 0) << client.error_output;
    const Json counters = Json::parse(client.output, nullptr, false).value("counters", Json::object());
    EXPECT_GT(counters.value("path.send_no_buffers", 0U), 0U);
    EXPECT_LT(counters.value("path.send_calls", ~0U), 2 * counters.value("path.datagrams_sent", 0U));
    return counters;
  }

  TwoNamespaces two_;
};

// The kernel refuses single datagrams. It hands a GSO batch over in one piece, whatever the far end's MTU. So the link
// may never lower its datagram size here.
TEST_F(RefusedSends, ANarrowFarEndCostsFewCalls) {
  if (const auto fault = two_.enlarge_first(9000)) GTEST_SKIP() << *fault;
  counters_of(transfer());
}

TEST_F(RefusedSends, ANarrowFarEndIsFoundWithoutSegmentationOffload) {
  if (const auto fault = two_.enlarge_first(9000)) GTEST_SKIP() << *fault;
  if (const auto fault = two_.cut_segments()) GTEST_SKIP() << *fault;
  EXPECT_GT(counters_of(transfer()).value("link.sizes_lowered", 0U), 0U);
}

TEST_F(RefusedSends, AFirewallOnTheWayOutIsTheCause) {
  if (const auto fault = two_.drop_at_first("output")) GTEST_SKIP() << *fault;
  const Finished client = transfer();
  EXPECT_NE(client.exit_code, 0);
  EXPECT_THAT(client.error_output, testing::HasSubstr("a firewall of this host drops datagrams to 10.77.0.2"));
}

}  // namespace
}  // namespace fairlead::tests
