#include "transport/lost_peers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

namespace fairlead::transport {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
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

TEST(LostPeers, TheProblemIsKnownWithoutTheSentence) {
  LostPeers peers(5s);
  EXPECT_EQ(peers.problem(kLost), PeerProblem::none);
  const auto problem = [&](const link::Notice& lost) {
    peers.forget(kLost);
    peers.add(kLost, lost, base::Instant{1s});
    return peers.problem(kLost);
  };
  EXPECT_EQ(problem(notice(Status::unreachable)), PeerProblem::never_heard);
  EXPECT_EQ(problem(notice(Status::unreachable, link::Diagnosis::nothing_heard)), PeerProblem::never_heard);
  EXPECT_EQ(problem(notice(Status::refused)), PeerProblem::nobody_listens);
  EXPECT_EQ(problem(notice(Status::restarted)), PeerProblem::other);
  EXPECT_EQ(problem(notice(Status::unreachable, link::Diagnosis::no_host)), PeerProblem::other);
  EXPECT_EQ(problem(notice(Status::refused, link::Diagnosis::left)), PeerProblem::other);
  link::Notice told = notice(Status::silent, link::Diagnosis::told_by_icmp);
  told.obstacle = link::Obstacle::nobody_listens;
  EXPECT_EQ(problem(told), PeerProblem::nobody_listens);
  told.obstacle = link::Obstacle::prohibited;
  EXPECT_EQ(problem(told), PeerProblem::other);
  EXPECT_EQ(problem(notice(Status::refused)), PeerProblem::nobody_listens);
  peers.blame(kLost, Offence::guesses);
  EXPECT_EQ(peers.problem(kLost), PeerProblem::other);
}

// The time is that since the peer was heard last, at the loss and until now.
TEST(LostPeers, SilenceHasItsLength) {
  LostPeers peers(5s);
  peers.add(kLost, notice(Status::silent), base::Instant{1s});
  EXPECT_THAT(peers.describe(kLost, base::Instant{2500ms}), HasSubstr("last heard 3.5 s ago"));
}

TEST(LostPeers, WithoutLoopbackTheRemedyIsToSetItUp) {
  LostPeers peers(5s);
  const auto here = *base::SocketAddress::from_ip("127.0.0.1", 20480);
  for (const auto& peer : {kLost, here})
    peers.add(peer, notice(Status::unreachable, link::Diagnosis::no_route), base::Instant{1s});
  EXPECT_THAT(peers.describe(kLost, base::Instant{1s}), HasSubstr("no host answers at that address"));
  EXPECT_THAT(peers.describe(here, base::Instant{1s}), HasSubstr("ip link set lo up"));
}

TEST(LostPeers, AnObstacleOnTheWayIsNamed) {
  LostPeers peers(5s);
  const auto text = [&](link::Notice lost) {
    peers.add(kLost, lost, base::Instant{1s});
    return peers.describe(kLost, base::Instant{2s});
  };
  EXPECT_THAT(text(notice(Status::unreachable, link::Diagnosis::prohibited)),
              HasSubstr("a firewall rejects datagrams to 10.0.0.7:20480"));
  EXPECT_THAT(text(notice(Status::refused)), HasSubstr("or a firewall rejects what is sent there"));
  EXPECT_THAT(text(notice(Status::silent, link::Diagnosis::no_host)), HasSubstr("no host answers at that address"));
  link::Notice not_sent = notice(Status::silent, link::Diagnosis::not_sent);
  not_sent.send_errno = ENETUNREACH;
  EXPECT_THAT(text(not_sent), AllOf(HasSubstr("cannot reach 10.0.0.7:20480"), HasSubstr("Network is unreachable")));
  link::Notice told = notice(Status::silent, link::Diagnosis::told_by_icmp);
  for (const auto& [obstacle, words] : {std::pair{link::Obstacle::nobody_listens, "nobody listens there"},
                                        {link::Obstacle::prohibited, "a firewall rejects the datagrams"},
                                        {link::Obstacle::no_route, "no way leads to that host"}}) {
    told.obstacle = obstacle;
    EXPECT_THAT(text(told),
                AllOf(HasSubstr("no ack from 10.0.0.7:20480 for 2.0 s"), HasSubstr("ICMP"), HasSubstr(words)));
  }
}

TEST(LostPeers, TheEndOfASharedConnectionHasItsCause) {
  LostPeers peers(5s);
  const auto text = [&](Status status, link::Diagnosis diagnosis, std::string reason = {}) {
    peers.add(kLost, notice(status, diagnosis), base::Instant{1s}, std::move(reason));
    return peers.describe(kLost, base::Instant{2s});
  };
  EXPECT_THAT(text(Status::refused, link::Diagnosis::process_ended),
              AllOf(HasSubstr("the process at 10.0.0.7:20480 ended 1.0 s ago"), HasSubstr("was it killed")));
  EXPECT_THAT(text(Status::refused, link::Diagnosis::cut_there), HasSubstr("and still runs"));
  EXPECT_THAT(
      text(Status::silent, link::Diagnosis::cut_here, "it stopped reading"),
      HasSubstr("this engine ended the connection through shared memory to 10.0.0.7:20480 1.0 s ago: it stopped "
                "reading"));
  EXPECT_THAT(text(Status::unreachable, link::Diagnosis::not_shared, "it belongs to user 7"),
              HasSubstr("path=shm permits no other path: it belongs to user 7"));
  EXPECT_THAT(text(Status::unreachable, link::Diagnosis::not_shared), HasSubstr("is the peer running?"));
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
