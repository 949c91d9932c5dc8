// Who has a place in the table of peers, and who gives way: docs/link.md, "Places".

#include <algorithm>

#include "link/crowd_for_tests.hpp"

namespace fairlead::link::testing {
namespace {

using namespace std::chrono_literals;

LinkOptions with_places(std::uint32_t peers_max) {
  LinkOptions options;
  options.peers_max = peers_max;
  return options;
}

std::string ip(int host) {
  return "10.0." + std::to_string(host / 250) + "." + std::to_string(host % 250 + 1);
}

std::uint64_t refused_for_want_of_places(const Link& link) {
  return link.counters().refused[static_cast<std::size_t>(Refusal::table_full)];
}

TEST(LinkPlaces, WhoeverComesFindsOneWhereOthersAreUnused) {
  Crowd crowd(with_places(64));
  for (int host = 0; host < 300; ++host) {
    ASSERT_TRUE(crowd.send(crowd.guest(Crowd::at(ip(host), 1)))) << host;
    crowd.now += 200ms;
  }
  EXPECT_LE(crowd.host.peer_count(), 64U);
  EXPECT_GE(crowd.host.counters().peers_forgotten, 236U);
  EXPECT_EQ(crowd.count(crowd.host_notices, Notice::Kind::lost), 0U);
}

TEST(LinkPlaces, AFloodFromOneHostShutsOutNobodyElse) {
  Crowd crowd(with_places(256));
  Crowd::Guest& friendly = crowd.guest(Crowd::at("10.1.1.1", 1));
  ASSERT_TRUE(crowd.send(friendly));
  for (std::uint16_t port = 1; port <= 1000; ++port) {
    crowd.send(crowd.guest(Crowd::at("10.6.6.6", port)), 0ms);
    if (port % 250 == 0) ASSERT_TRUE(crowd.send(friendly));
  }
  EXPECT_LE(crowd.host.peer_count(), 129U);
  EXPECT_GT(refused_for_want_of_places(crowd.host), 0U);
  for (int host = 0; host < 100; ++host) ASSERT_TRUE(crowd.send(crowd.guest(Crowd::at(ip(host), 1)))) << host;
  EXPECT_TRUE(crowd.send(friendly));
  EXPECT_EQ(crowd.count(friendly.notices, Notice::Kind::lost), 0U);
}

TEST(LinkPlaces, AFloodFromThreeHostsThatStayBusyShutsOutNobodyElse) {
  Crowd crowd(with_places(256));
  std::vector<Crowd::Guest*> flood;
  const auto stay_busy = [&] {
    for (Crowd::Guest* guest : flood) {
      guest->link->submit(*guest->link->peer(crowd.address, 1472, crowd.now), {}, crowd.now);
      crowd.exchange(*guest);
    }
  };
  for (std::uint16_t port = 1; port <= 100; ++port) {
    for (const char* from : {"10.6.6.6", "10.7.7.7", "10.8.8.8"}) {
      flood.push_back(&crowd.guest(Crowd::at(from, port)));
      crowd.send(*flood.back(), 0ms);
    }
  }
  EXPECT_GE(crowd.host.peer_count(), 240U);
  for (int host = 0; host < 60; ++host) {
    stay_busy();
    EXPECT_TRUE(crowd.send(crowd.guest(Crowd::at(ip(host), 1)), 1s)) << host;
  }
  EXPECT_LE(crowd.host.peer_count(), 256U);
}

TEST(LinkPlaces, ThePeerOfAPendingMessageKeepsItsOwn) {
  Crowd crowd(with_places(32));
  std::vector<Crowd::Guest*> guests;
  for (int host = 0; host < 28; ++host) {
    guests.push_back(&crowd.guest(Crowd::at(ip(host), 1)));
    ASSERT_TRUE(crowd.send(*guests.back()));
  }
  for (Crowd::Guest* guest : guests) {  // the host's answers to them are lost
    const auto peer = crowd.host.find(guest->address);
    ASSERT_TRUE(peer);
    ASSERT_EQ(crowd.host.submit(*peer, {}, crowd.now), Status::ok);
  }
  for (int host = 100; host < 140; ++host) crowd.send(crowd.guest(Crowd::at(ip(host), 1)), 0ms);
  for (Crowd::Guest* guest : guests) EXPECT_TRUE(crowd.host.find(guest->address));
}

TEST(LinkPlaces, BothSidesForgetAndNeitherLosesAnything) {
  Crowd crowd(with_places(16));
  Crowd::Guest& guest = crowd.guest(Crowd::at("10.1.1.1", 1));
  ASSERT_TRUE(crowd.send(guest));
  const PeerHandle before = *crowd.host.find(guest.address);
  crowd.now += 6s;
  for (int host = 0; host < 40; ++host) {
    ASSERT_TRUE(crowd.send(crowd.guest(Crowd::at(ip(host), 1))));
    crowd.now += 1s;
  }
  crowd.exchange(guest);  // it hears the close
  EXPECT_FALSE(crowd.host.find(guest.address));
  EXPECT_EQ(guest.link->peer_count(), 0U);
  EXPECT_EQ(crowd.count(guest.notices, Notice::Kind::forgotten), 1U);
  EXPECT_EQ(crowd.host.submit(before, {}, crowd.now), Status::stale);
  ASSERT_TRUE(crowd.send(guest));  // a new session
  EXPECT_EQ(guest.ends, (std::vector<Status>{Status::ok, Status::ok}));
  EXPECT_NE(*crowd.host.find(guest.address), before);
  EXPECT_EQ(crowd.count(guest.notices, Notice::Kind::lost), 0U);
  EXPECT_EQ(crowd.count(crowd.host_notices, Notice::Kind::lost), 0U);
  EXPECT_TRUE(crowd.host.counters().is_consistent());
}

TEST(LinkPlaces, WhoIsUsedAgainBeforeTheNoticeIsFetchedStays) {
  Crowd crowd(with_places(16));
  Crowd::Guest& guest = crowd.guest(Crowd::at("10.1.1.1", 1));
  ASSERT_TRUE(crowd.send(guest));
  const PeerHandle before = *crowd.host.find(guest.address);
  crowd.now += 11min;
  // the first peer is considered, and is to be forgotten
  ASSERT_TRUE(crowd.host.peer(Crowd::at(ip(1), 1), 1472, crowd.now));
  ASSERT_TRUE(crowd.host.peer(Crowd::at(ip(2), 1), 1472, crowd.now));
  EXPECT_TRUE(crowd.host.has_news());
  ASSERT_EQ(crowd.host.submit(before, {.cookie = 1}, crowd.now), Status::ok);
  EXPECT_FALSE(crowd.host.next_notice());
  crowd.exchange(guest);
  EXPECT_EQ(crowd.host_ends, (std::vector<Status>{Status::ok}));
  EXPECT_EQ(*crowd.host.find(guest.address), before);
}

TEST(LinkPlaces, WhatIsLongUnusedIsForgottenWhenOthersCome) {
  Crowd crowd(with_places(10'000));
  for (std::uint16_t port = 1; port <= 1000; ++port) ASSERT_TRUE(crowd.send(crowd.guest(Crowd::at("10.1.1.1", port))));
  EXPECT_EQ(crowd.host.peer_count(), 1000U);
  crowd.now += 15min;
  Train unheard;
  for (int i = 0; i < 100'000 && crowd.host.next_deadline() != base::kNever; ++i) {
    crowd.now = std::max(crowd.now, crowd.host.next_deadline());
    crowd.host.expire(crowd.now);
    while (crowd.host.next_train(crowd.now, 65'000, 1, unheard)) {
    }
  }
  EXPECT_EQ(crowd.host.next_deadline(), base::kNever);  // no thread wakes for it
  EXPECT_EQ(crowd.host.peer_count(), 1000U);
  for (std::uint16_t port = 1; port <= 600; ++port) ASSERT_TRUE(crowd.send(crowd.guest(Crowd::at("10.1.1.2", port))));
  EXPECT_EQ(crowd.host.peer_count(), 600U);
}

TEST(LinkPlaces, HalfOpenOnesOfAHostGiveWayToItsOwnOnly) {
  LinkOptions options;
  options.half_open_max = 40;
  options.half_open_each_max = 10;
  Crowd crowd(options);
  // Guests that never receive the hello_ack: they have shown a cookie and nothing else.
  const auto half_open = [&](const base::SocketAddress& from) {
    Crowd::Guest& guest = crowd.guest(from);
    guest.link->submit(*guest.link->peer(crowd.address, 1472, crowd.now), {}, crowd.now);
    Train train;
    for (int words = 0; words < 2; ++words) {  // a hello, and with its cookie
      ASSERT_TRUE(guest.link->next_train(crowd.now, 65'000, 1, train));
      crowd.host.receive(from, {static_cast<const std::byte*>(train.pieces[0].iov_base), train.bytes}, crowd.now, 1472);
      ASSERT_TRUE(crowd.host.next_train(crowd.now, 65'000, 1, train));
      if (words == 0)
        guest.link->receive(crowd.address, {static_cast<const std::byte*>(train.pieces[0].iov_base), train.bytes},
                            crowd.now, 1472);
    }
  };
  half_open(Crowd::at("10.1.1.1", 1));
  for (std::uint16_t port = 1; port <= 100; ++port) half_open(Crowd::at("10.6.6.6", port));
  EXPECT_EQ(crowd.host.peer_count(), 11U);
  EXPECT_FALSE(crowd.host.find(Crowd::at("10.6.6.6", 90)));
  EXPECT_TRUE(crowd.host.find(Crowd::at("10.6.6.6", 91)));
  EXPECT_TRUE(crowd.host.find(Crowd::at("10.1.1.1", 1)));
  for (int host = 0; host < 100; ++host) half_open(Crowd::at(ip(host), 1));
  EXPECT_EQ(crowd.host.peer_count(), 40U);
  EXPECT_TRUE(crowd.host.find(Crowd::at(ip(99), 1)));
  EXPECT_EQ(crowd.host.counters().half_open_dropped, 90U + 71U);
  crowd.now += 3s;
  crowd.host.expire(crowd.now);
  EXPECT_EQ(crowd.host.peer_count(), 0U);
}

}  // namespace
}  // namespace fairlead::link::testing
