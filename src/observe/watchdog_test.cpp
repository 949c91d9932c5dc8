#include "observe/watchdog.hpp"

#include <gtest/gtest.h>

namespace fairlead::observe {
namespace {

using namespace std::chrono_literals;

constexpr base::Instant kBegin{100s};

PeerVitals healthy() {
  return {.address = *base::SocketAddress::from_ip("10.0.0.7", 20480),
          .is_connected = true,
          .round_trip = 100us,
          .resend_after = 2ms,
          .last_heard = kBegin};
}

PeerVitals busy() {
  PeerVitals vitals = healthy();
  vitals.segments_in_flight = 12;
  vitals.bytes_in_flight = 16'800;
  vitals.messages_queued = 3;
  return vitals;
}

TEST(Watchdog, TellsTheCauses) {
  const base::Instant now = kBegin + 2s;
  EXPECT_EQ(diagnose(healthy(), now), Stall::none);
  EXPECT_EQ(diagnose(busy(), now), Stall::silent);

  PeerVitals heard = busy();
  heard.last_heard = now - 3ms;
  EXPECT_EQ(diagnose(heard, now), Stall::one_way);

  PeerVitals queued = healthy();
  queued.messages_queued = 1;
  EXPECT_EQ(diagnose(queued, now), Stall::no_room);
  queued.is_connected = false;
  EXPECT_EQ(diagnose(queued, now), Stall::never_heard);

  PeerVitals receiving = healthy();
  receiving.messages_arriving = 2;
  receiving.is_answer_awaited = true;
  EXPECT_EQ(diagnose(receiving, now), Stall::arriving);

  PeerVitals asked = healthy();
  asked.is_answer_awaited = true;
  EXPECT_EQ(diagnose(asked, now), Stall::unanswered);
  EXPECT_EQ(diagnose({}, now), Stall::none);
}

TEST(Watchdog, TheParagraphSaysWhoWaitsForWhomWhySinceWhenAndWhatToDo) {
  EXPECT_EQ(
      describe_stall(busy(), 2100ms, kBegin + 2s),
      "waiting for 10.0.0.7:20480 for 2.1 s: nothing was heard from it for 2.0 s, and it owes the acknowledgement of "
      "12 segments (16800 bytes); 3 messages queue behind them; resends go on every 2.0 ms. Is the peer's process "
      "alive and not stopped, does the network still lead there?");
  PeerVitals heard = busy();
  heard.last_heard = kBegin + 2s;
  EXPECT_NE(describe_stall(heard, 1s, kBegin + 2s).find("FAIRLEAD_DATAGRAM_SIZE=1200"), std::string::npos);
  EXPECT_EQ(describe_stall(healthy(), 1s, kBegin), "");
}

TEST(Watchdog, SpeaksOnceAStallAndOnceAtItsEnd) {
  Watchdog watchdog;
  PeerVitals vitals = busy();
  std::vector<std::string> said;
  base::Instant now = kBegin;
  const auto look = [&](int times) {
    for (; times > 0; --times, now += 100ms) {
      if (std::string text = watchdog.look(5, vitals, now); !text.empty()) said.push_back(text);
    }
  };
  look(2);
  EXPECT_TRUE(said.empty());
  look(20);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(said[0].starts_with("waiting for 10.0.0.7:20480 for 0.2 s: ")) << said[0];
  vitals.moved = 1;
  look(1);
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[1], "10.0.0.7:20480 moves again after 2.2 s");
  look(20);
  EXPECT_EQ(said.size(), 3u) << "a second stall is told, too";
}

TEST(Watchdog, StaysSilentWhileThingsMoveOrNothingIsToBeDone) {
  Watchdog watchdog;
  PeerVitals vitals = busy();
  base::Instant now = kBegin;
  for (int i = 0; i < 50; ++i, now += 100ms) {
    ++vitals.moved;
    EXPECT_EQ(watchdog.look(0, vitals, now), "");
  }
  vitals = healthy();
  for (int i = 0; i < 50; ++i, now += 100ms) EXPECT_EQ(watchdog.look(0, vitals, now), "");
}

TEST(Watchdog, NeitherIdleTimeNorAPauseOfOursIsAStall) {
  Watchdog watchdog;
  EXPECT_EQ(watchdog.look(0, healthy(), kBegin), "");
  const base::Instant later = kBegin + 3600s;
  EXPECT_EQ(watchdog.look(0, busy(), later), "") << "an hour without work";
  EXPECT_EQ(watchdog.look(0, busy(), later + 5s), "") << "nobody looked for five seconds";
  EXPECT_NE(watchdog.look(0, busy(), later + 6s), "");
}

TEST(Watchdog, LongRoundTripsTakeLonger) {
  PeerVitals vitals = busy();
  vitals.round_trip = 300ms;
  EXPECT_EQ(stall_after(vitals), 3s);
  EXPECT_EQ(stall_after(busy()), 200ms);
}

TEST(Watchdog, AForgottenPeerBeginsAnew) {
  Watchdog watchdog;
  for (int i = 0; i < 2; ++i) watchdog.look(0, busy(), kBegin + i * 1s);
  watchdog.forget(0);
  watchdog.forget(1);
  EXPECT_EQ(watchdog.look(0, busy(), kBegin + 2s), "");
}

}  // namespace
}  // namespace fairlead::observe
