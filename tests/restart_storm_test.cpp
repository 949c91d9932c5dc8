// A host engine with many peers restarts while all of them send: each message arrives at last, and no peer gives up.
// `build/bin/restart_storm_bench` shows 10,000 peers.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

#include "bench/restart_storm.hpp"
#include "tests/environment.hpp"

namespace fairlead::tests {
namespace {

TEST(RestartStorm, NoPeerGivesUpAndEachSendsFewDatagrams) {
  const std::uint32_t peers = is_full_run() ? 10'000 : 500;
  for (const int spread_ms : {0, 1000}) {
    bench::RestartStorm storm({.peers = peers, .spread = std::chrono::milliseconds(spread_ms)});
    const bench::StormResult connected = storm.send_all();
    EXPECT_EQ(connected.given_up, 0U);
    EXPECT_EQ(connected.refused_messages, 0U);
    EXPECT_GE(connected.arrived, 2 * peers) << "a hello and a message from each";
    storm.restart();
    const bench::StormResult again = storm.send_all();
    EXPECT_EQ(again.given_up, 0U);
    EXPECT_EQ(again.refused_messages, peers) << "each peer learns of the restart by one message";
    EXPECT_LE(again.arrived, 25 * peers);
    EXPECT_LE(again.until_all, std::chrono::milliseconds(spread_ms) + std::chrono::seconds(2));
  }
}

}  // namespace
}  // namespace fairlead::tests
