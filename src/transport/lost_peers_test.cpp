#include "transport/lost_peers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace fairlead::transport {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const base::SocketAddress kLost = *base::SocketAddress::from_ip("10.0.0.7", 20480);

link::Notice notice(Status status, link::Diagnosis diagnosis = link::Diagnosis::none) {
  link::Notice lost;
  lost.status = status;
  lost.diagnosis = diagnosis;
  lost.silent_for = 2s;
  return lost;
}

TEST(LostPeers, TellsOfTheLastLossUntilThePeerIsMetAgain) {
  LostPeers peers(5s);
  EXPECT_EQ(peers.describe(kLost, base::Instant{}), "");
  peers.add(kLost, notice(Status::silent), base::Instant{1s});
  EXPECT_THAT(peers.describe(kLost, base::Instant{2s}), HasSubstr("no ack from 10.0.0.7:20480 for 2.0 s"));
  peers.add(kLost, notice(Status::restarted), base::Instant{3s});
  EXPECT_THAT(peers.describe(kLost, base::Instant{4s}), HasSubstr("restarted 1.0 s ago"));
  peers.forget(kLost);
  EXPECT_EQ(peers.describe(kLost, base::Instant{4s}), "");
}

TEST(LostPeers, ADiagnosisSaysMoreThanTheStatusAndAnOffenceMost) {
  LostPeers peers(5s);
  peers.add(kLost, notice(Status::silent, link::Diagnosis::stuck), base::Instant{1s});
  EXPECT_THAT(peers.describe(kLost, base::Instant{2s}), HasSubstr("sent no more of it for 5.0 s"));
  peers.blame(kLost, Offence::guesses);
  EXPECT_THAT(peers.describe(kLost, base::Instant{2s}), HasSubstr("this engine expelled 10.0.0.7:20480 1.0 s ago"));
}

TEST(LostPeers, WhoeverLeftInOrderIsNotThereForThoseWhoLookLater) {
  LostPeers peers(5s);
  EXPECT_TRUE(peers.add(kLost, notice(Status::refused, link::Diagnosis::left), base::Instant{1s}));
  EXPECT_TRUE(peers.add(kLost, notice(Status::unreachable), base::Instant{2s}));
  EXPECT_THAT(peers.describe(kLost, base::Instant{3s}), HasSubstr("as it had announced"));
  peers.forget(kLost);
  EXPECT_FALSE(peers.add(kLost, notice(Status::unreachable), base::Instant{4s}));
}

TEST(LostPeers, RemembersSoManyAndNotMore) {
  LostPeers peers(5s);
  for (std::uint16_t port = 1; port <= 1000; ++port)
    peers.add(*base::SocketAddress::from_ip("10.0.0.7", port), notice(Status::silent), base::Instant{1s});
  EXPECT_NE(peers.describe(*base::SocketAddress::from_ip("10.0.0.7", 1), base::Instant{1s}), "");
  EXPECT_EQ(peers.describe(*base::SocketAddress::from_ip("10.0.0.7", 1000), base::Instant{1s}), "");
}

}  // namespace
}  // namespace fairlead::transport
