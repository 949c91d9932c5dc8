#include "observe/flight_recorder.hpp"

#include <gtest/gtest.h>

#include <fairlead/error.hpp>

namespace fairlead::observe {
namespace {

using namespace std::chrono_literals;

constexpr base::Instant kStart{10s};

TEST(FlightRecorder, TheTableIsInTheOrderOfTheKinds) {
  for (std::size_t i = 0; i < kFlightKinds.size(); ++i) {
    const FlightEvent event(kStart, kFlightKinds[i].kind, 1, 100);
    EXPECT_EQ(static_cast<std::size_t>(kFlightKinds[i].kind), i);
    EXPECT_FALSE(event.to_string().empty());
    EXPECT_EQ(event.to_string().find('{'), std::string::npos);
  }
}

TEST(FlightRecorder, PrintsPlainLinesWithTheirAge) {
  FlightRecorder recorder;
  recorder.record(3, FlightKind::connected, 0, 0, kStart);
  recorder.record(3, FlightKind::sent, 3, 4200, kStart + 1ms);
  recorder.record(3, FlightKind::received, 2, 60, kStart + 1500us);
  recorder.record(3, FlightKind::lost, static_cast<std::uint64_t>(Status::silent), 0, kStart + 2s);
  EXPECT_EQ(recorder.describe(3, "10.0.0.7:20480", kStart + 2s),
            "the last 4 of 4 events with 10.0.0.7:20480, by their age:\n"
            "      2.000000 s  connected\n"
            "      1.999000 s  sent 3 datagrams, 4200 bytes\n"
            "      1.998500 s  received 60 bytes, 2 segments acknowledged\n"
            "      0.000000 s  gave the peer up: peer silent\n");
  EXPECT_EQ(recorder.describe(2, "nobody", kStart), "");
  EXPECT_EQ(recorder.describe(4, "nobody", kStart), "");
}

TEST(FlightRecorder, KeepsTheLastEvents) {
  FlightRecorder recorder;
  for (std::uint32_t i = 0; i < 1000; ++i) recorder.record(0, FlightKind::sent, i, i, kStart + i * 1ms);
  const auto events = recorder.events(0);
  ASSERT_EQ(events.size(), FlightRecorder::kEvents);
  for (std::uint32_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].number(), 1000 - events.size() + i);
  EXPECT_NE(recorder.describe(0, "it", kStart).find("the last 128 of 1000 events"), std::string::npos);
}

TEST(FlightRecorder, AmountsThatFollowCloselyAddUpAndChangesDoNot) {
  FlightRecorder recorder;
  for (int i = 0; i < 50; ++i) recorder.record(0, FlightKind::submitted, 1, 8, kStart + i * 1us);
  recorder.record(0, FlightKind::submitted, 1, 8, kStart + 100us);
  recorder.record(0, FlightKind::sent, 1, 400, kStart + 101us);
  for (int i = 0; i < 2; ++i) recorder.record(0, FlightKind::connected, 0, 0, kStart + 102us);
  const auto events = recorder.events(0);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].to_string(), "submitted 50 messages, 400 bytes");
  EXPECT_EQ(events[0].at, kStart);
  EXPECT_EQ(events[1].number(), 1u);
  EXPECT_EQ(events[4].kind(), FlightKind::connected);
}

TEST(FlightRecorder, AmountsSaturate) {
  const FlightEvent event(kStart, FlightKind::sent, UINT64_MAX, UINT64_MAX);
  EXPECT_EQ(event.number(), FlightEvent::kNumberMax);
  EXPECT_EQ(event.size, UINT32_MAX);
  EXPECT_EQ(event.kind(), FlightKind::sent);
}

TEST(FlightRecorder, TheQuietestPeersRingGoesToANewOne) {
  FlightRecorder recorder(4);
  for (std::uint32_t peer = 0; peer < 4; ++peer) recorder.record(peer, FlightKind::connected, 0, 0, kStart);
  // All are equally recent, so the first one is replaced; then those not used since.
  recorder.record(100, FlightKind::connected, 0, 0, kStart);
  EXPECT_TRUE(recorder.events(0).empty());
  recorder.record(1, FlightKind::connected, 0, 0, kStart);
  recorder.record(101, FlightKind::connected, 0, 0, kStart);
  EXPECT_EQ(recorder.events(1).size(), 2u);
  EXPECT_TRUE(recorder.events(2).empty());
  std::size_t peers = 0;
  recorder.for_each_peer([&](std::uint32_t peer) {
    EXPECT_FALSE(recorder.events(peer).empty());
    ++peers;
  });
  EXPECT_EQ(peers, 4u);
  for (std::uint32_t peer = 0; peer < 10'000; ++peer) recorder.record(peer, FlightKind::sent, 1, 1, kStart);
  EXPECT_EQ(recorder.events(9'999).size(), 1u);
}

TEST(FlightRecorder, AForgottenPeersRingIsEmptyAndUsedAgain) {
  FlightRecorder recorder(1);
  recorder.record(7, FlightKind::sent, 1, 1, kStart);
  recorder.forget(7);
  recorder.forget(8);
  EXPECT_TRUE(recorder.events(7).empty());
  recorder.record(7, FlightKind::received, 1, 1, kStart);
  ASSERT_EQ(recorder.events(7).size(), 1u);
  EXPECT_EQ(recorder.events(7)[0].kind(), FlightKind::received);
  recorder.record(8, FlightKind::sent, 1, 1, kStart);
  EXPECT_TRUE(recorder.events(7).empty());
  EXPECT_EQ(recorder.events(8).size(), 1u);
}

TEST(FlightRecorder, ARingThatWasFreeTakesNothingFromItsFormerPeer) {
  FlightRecorder recorder(2);
  recorder.record(7, FlightKind::sent, 1, 1, kStart);
  recorder.forget(7);
  recorder.record(7, FlightKind::received, 1, 1, kStart);
  recorder.record(8, FlightKind::sent, 1, 1, kStart);
  EXPECT_EQ(recorder.events(7).size(), 1u);
  EXPECT_EQ(recorder.events(8).size(), 1u);
}

// Events of another process may have any time.
TEST(FlightRecorder, BearsAnyTime) {
  const FlightEvent event(base::Instant::min(), FlightKind::sent, 1, 1);
  EXPECT_NE(describe_flight({&event, 1}, 1, "a peer", base::Instant(100s)).find("9223372136.854776 s"),
            std::string::npos);
}

}  // namespace
}  // namespace fairlead::observe
