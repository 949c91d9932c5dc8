// Round trips with a server that does not exist.

#include "tools/nettest/client.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "tools/base/now.hpp"

namespace fairlead::tools {
namespace {

class NettestClientTest : public testing::TestWithParam<bool> {};

// The reply to a message that has failed never comes. A client that waited for it took its whole timeout, and the other
// agents of the run gave up in the meantime.
TEST_P(NettestClientTest, AFailedMessageEndsItsRoundTripAtOnce) {
  net::Domain domain = net::Domain::open().value();
  NettestPlan plan;
  plan.is_bulk = GetParam();
  plan.timeout = std::chrono::seconds{100};
  NettestClient client(domain, plan);
  ASSERT_TRUE(client.start("0@lo:20480:39:1", {"0@lo:20480:39:2"}));
  const Instant end = now() + plan.timeout / 4;
  client.begin();
  while (client.figures().sent.failed == 0 && now() < end) std::this_thread::yield();
  client.finish();
  while (!client.is_done() && now() < end) std::this_thread::yield();
  EXPECT_TRUE(client.is_done());
  EXPECT_GT(client.figures().sent.failed, 0u);
  EXPECT_EQ(client.figures().round_trips.done, 0u);
  client.stop();
}

INSTANTIATE_TEST_SUITE_P(Types, NettestClientTest, testing::Bool());

}  // namespace
}  // namespace fairlead::tools
