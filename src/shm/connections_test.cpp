#include "shm/connections.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/place_for_tests.hpp"

namespace fairlead::shm {
namespace {

using Kind = ConnectionEvent::Kind;

base::SocketAddress address(std::uint16_t number) {
  return base::place_for_tests(number);
}

struct Side {
  explicit Side(std::uint16_t number, std::uint64_t epoch, const ConnectionOptions& options = {.ring_bytes = 64 * 1024})
      : own(address(number)), connections(Connections::open(own, epoch, options).value()) {}

  /// Collects events until there are `count`, or a limit of attempts.
  std::vector<ConnectionEvent> events(std::size_t count) {
    std::vector<ConnectionEvent> seen;
    for (int i = 0; i < 1000 && seen.size() < count; ++i) {
      connections->attend({});
      while (auto event = connections->next_event()) seen.push_back(*event);
    }
    return seen;
  }
  Connection& to(const Side& other) { return connections->peer(connections->find(other.own)); }
  int doorbell_memory() const { return connections->watch().doorbell().memory_descriptor(); }

  base::SocketAddress own;
  std::unique_ptr<Connections> connections;
};

void meet(Side& asking, Side& asked) {
  ASSERT_TRUE(asking.connections->ask(asked.own, {}));
  ASSERT_EQ(asked.events(1).at(0).kind, Kind::opened);
  ASSERT_EQ(asking.events(1).at(0).kind, Kind::opened);
}

void write(Connection& peer, std::string_view text) {
  std::byte* body = peer.writer.reserve(text.size());
  ASSERT_NE(body, nullptr);
  std::memcpy(body, text.data(), text.size());
  peer.writer.publish(text.size(), peer.reader.read());
  peer.alert();
}

std::string look(Side& side) {
  std::string seen;
  Watch& watch = side.connections->watch();
  watch.begin_look();
  for (std::uint32_t slot = watch.next(); slot != Connections::kNone; slot = watch.next()) {
    Connection& peer = side.connections->peer(slot);
    while (peer.reader.has_record()) {
      const auto record = peer.reader.record();
      if (!record) break;
      seen.append(reinterpret_cast<const char*>(record->body.data()), record->body.size());
      peer.reader.pass(record->body.size());
    }
    peer.reader.tell();
  }
  return seen;
}

bool is_readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

TEST(Connections, TwoMeetAndTalk) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  EXPECT_EQ(near.to(far).epoch, 12u);
  EXPECT_EQ(far.to(near).epoch, 11u);
  write(near.to(far), "there");
  EXPECT_EQ(look(far), "there");
  write(far.to(near), "back");
  EXPECT_EQ(look(near), "back");
  EXPECT_EQ(look(near), "");
}

TEST(Connections, OnePairStandsIfBothAskAtOnce) {
  Side low(1, 11), high(2, 12);
  ASSERT_TRUE(low.connections->ask(high.own, {}));
  ASSERT_TRUE(high.connections->ask(low.own, {}));
  for (int i = 0; i < 10; ++i) {
    low.connections->attend({});
    high.connections->attend({});
  }
  EXPECT_EQ(low.to(high).state, Connection::State::open);
  EXPECT_EQ(high.to(low).state, Connection::State::open);
  EXPECT_TRUE(low.to(high).has_asked);
  EXPECT_FALSE(high.to(low).has_asked);
  write(low.to(high), "there");
  EXPECT_EQ(look(high), "there");
}

TEST(Connections, WhoLeavesIsNotTakenForDead) {
  Side far(2, 12);
  {
    Side near(1, 11);
    meet(near, far);
    near.connections->take_leave();
    EXPECT_EQ(far.to(near).state, Connection::State::open);
  }
  const ConnectionEvent ended = far.events(1).at(0);
  ASSERT_EQ(ended.kind, Kind::ended);
  EXPECT_EQ(ended.ended_by, End::peer_left);
}

TEST(Connections, WhoLeavesBeforeItKnowsThatItIsConnectedIsNotTakenForDead) {
  Side far(2, 12);
  {
    Side near(1, 11);
    ASSERT_TRUE(near.connections->ask(far.own, {}));
    ASSERT_EQ(far.events(1).at(0).kind, Kind::opened);
    near.connections->take_leave();
  }
  const ConnectionEvent ended = far.events(1).at(0);
  ASSERT_EQ(ended.kind, Kind::ended);
  EXPECT_EQ(ended.ended_by, End::peer_left);
}

TEST(Connections, WhoTakesNoLeaveIsTakenForDead) {
  Side far(2, 12);
  {
    Side near(1, 11);
    meet(near, far);
  }
  const ConnectionEvent ended = far.events(1).at(0);
  ASSERT_EQ(ended.kind, Kind::ended);
  EXPECT_EQ(ended.ended_by, End::peer_gone);
}

TEST(Connections, WhoCutsOneIsNotTakenForDead) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  near.connections->end(near.connections->find(far.own), "it stopped reading");
  const ConnectionEvent here = near.events(1).at(0), there = far.events(1).at(0);
  EXPECT_EQ(here.ended_by, End::here);
  EXPECT_EQ(here.reason, "it stopped reading");
  EXPECT_EQ(there.ended_by, End::peer_cut);
}

TEST(Connections, WhoLeavesAnswersNobody) {
  Side far(2, 12);
  {
    Side near(1, 11);
    near.connections->take_leave();
    ASSERT_TRUE(far.connections->ask(near.own, {}));
    EXPECT_TRUE(near.events(1).empty());
    EXPECT_TRUE(far.events(1).empty());
  }
  EXPECT_EQ(far.events(1).at(0).kind, Kind::declined);
}

TEST(Connections, NobodyThereIsRefusedAtOnce) {
  Side near(1, 11);
  const auto asked = near.connections->ask(address(9), {});
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().status, Status::refused);
  EXPECT_EQ(near.connections->find(address(9)), Connections::kNone);
}

TEST(Connections, ADeathIsNoticedAndWhatWasWrittenBeforeCanBeRead) {
  Side near(1, 11);
  {
    Side far(2, 12);
    meet(near, far);
    write(far.to(near), "last words");
  }
  EXPECT_TRUE(is_readable(near.connections->descriptor()));
  const auto events = near.events(1);
  ASSERT_EQ(events.at(0).kind, Kind::ended);
  EXPECT_EQ(look(near), "last words");
  near.connections->forget(events[0].slot);
  EXPECT_EQ(near.connections->find(address(2)), Connections::kNone);
  Side next(2, 13);
  meet(near, next);
  write(next.to(near), "again");
  EXPECT_EQ(look(near), "again");
}

TEST(Connections, ASleeperIsWokenOnceAndSomebodyAwakeNever) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  look(far);
  ASSERT_TRUE(far.connections->watch().arm());
  EXPECT_FALSE(is_readable(far.connections->descriptor()));
  write(near.to(far), "1");
  EXPECT_TRUE(is_readable(far.connections->descriptor()));
  far.connections->watch().disarm();
  EXPECT_TRUE(far.events(1).empty()) << "it is no more than a wake-up";
  EXPECT_FALSE(is_readable(far.connections->descriptor()));
  EXPECT_EQ(look(far), "1");  // the peer is watched from now on
  write(near.to(far), "2");
  EXPECT_FALSE(is_readable(far.connections->descriptor()));
  EXPECT_FALSE(far.connections->watch().arm()) << "it must not sleep: there is a record";
  EXPECT_EQ(look(far), "2");
}

// Another polling thread may take the sleeper's wake-up and then stop polling.
TEST(Connections, ASleeperIsRousedByWhoeverTakesItsWakeUp) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  look(far);
  ASSERT_TRUE(far.connections->watch().arm());
  write(near.to(far), "1");
  far.connections->attend({});
  EXPECT_TRUE(is_readable(far.connections->descriptor()));
  EXPECT_EQ(look(far), "1");
  far.connections->watch().disarm();
  EXPECT_FALSE(is_readable(far.connections->descriptor()));

  ASSERT_TRUE(far.connections->watch().arm());
  far.connections->watch().remind(far.connections->find(near.own));
  EXPECT_TRUE(is_readable(far.connections->descriptor()));
  far.connections->watch().disarm();
  look(far);

  ASSERT_TRUE(far.connections->watch().arm());
  static_cast<void>(near.to(far).doorbell.ring(near.to(far).doorbell_bit));  // rings without waking anybody
  EXPECT_FALSE(is_readable(far.connections->descriptor()));
  look(far);
  EXPECT_TRUE(is_readable(far.connections->descriptor()));
  far.connections->watch().disarm();
}

TEST(Connections, WhoNeverTakesItsWakeUpsHoldsUpNobody) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  for (int i = 0; i < 2000; ++i) {
    far.connections->watch().arm();
    near.to(far).ring();
    far.connections->watch().disarm();
  }
  EXPECT_TRUE(far.events(1).empty());
  EXPECT_FALSE(is_readable(far.connections->descriptor()));
}

TEST(Connections, MoreBusyPeersThanAreWatchedLoseNothing) {
  Side far(0, 10);
  std::vector<std::unique_ptr<Side>> many;
  for (std::uint16_t i = 1; i <= 20; ++i) {
    many.push_back(std::make_unique<Side>(i, i));
    meet(*many.back(), far);
  }
  for (int round = 0; round < 1000; ++round) {
    for (const auto& one : many) write(one->to(far), "x");
    EXPECT_EQ(look(far).size(), many.size());
    for (const auto& one : many) ASSERT_TRUE(one->to(far).writer.look());
  }
}

TEST(Connections, AQuietPeerIsNoLongerLookedAtUntilItRings) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  write(near.to(far), "1");
  EXPECT_EQ(look(far), "1");
  EXPECT_TRUE(far.to(near).is_watched);
  for (int i = 0; i < 200'000 && far.to(near).is_watched; ++i) EXPECT_EQ(look(far), "");
  EXPECT_FALSE(far.to(near).is_watched);
  EXPECT_EQ(far.connections->counters().unwatched, 1u);
  write(near.to(far), "2");
  EXPECT_EQ(look(far), "2");
  EXPECT_TRUE(far.to(near).is_watched);
}

TEST(Connections, APeerWithTrafficStaysWatched) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  write(near.to(far), "1");
  look(far);
  for (int i = 0; i < 200'000; ++i) {
    if (i % 10'000 == 0) {
      write(near.to(far), "x");
      far.connections->watch().note_traffic(far.connections->find(near.own));
    }
    look(far);
  }
  EXPECT_TRUE(far.to(near).is_watched);
  EXPECT_EQ(far.connections->counters().unwatched, 0u);
}

/// Our side of the shared page, as the peer can write to it.
PairSide& own_side_as_seen_by(Connection& peer) {
  return const_cast<PairSide&>(*peer.other);
}

TEST(Connections, APeerDoesNotDecideWhomWeWatch) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  for (int i = 0; i < 20; ++i) {
    own_side_as_seen_by(near.to(far)).is_watching.store(0);
    write(near.to(far), "x");
    EXPECT_EQ(look(far), "x");
    own_side_as_seen_by(near.to(far)).is_watching.store(0);
    near.to(far).ring();
    look(far);
  }
  near.connections->end(near.connections->find(far.own), "tired");
  const auto events = far.events(1);
  ASSERT_EQ(events.at(0).kind, Kind::ended);
  far.connections->forget(events[0].slot);
  EXPECT_FALSE(far.connections->watch().is_watching()) << "nothing is left of it";
  EXPECT_TRUE(far.connections->watch().arm());
  far.connections->watch().disarm();
  look(far);
}

TEST(Connections, APeerDoesNotDecideWhatWeAreAt) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  PairSide& told = own_side_as_seen_by(near.to(far));
  const Use use = Use::of_region(3, 4);
  const auto word = [&](std::uint64_t turn) { return turn << Use::kTurnShift | use.name(); };
  told.at.store(word(7));  // pretends that this is our seventh use
  far.to(near).enter(use);
  EXPECT_EQ(told.at.load(), word(1)) << "we are there for the first";
  told.at.store(word(40));
  far.to(near).leave();
  EXPECT_EQ(told.at.load(), 0u);
  for (int turn = 2; turn <= 65535; ++turn) far.to(near).enter(use);
  EXPECT_EQ(told.at.load(), word(65535));
  far.to(near).enter(use);
  EXPECT_EQ(told.at.load(), word(1)) << "never 0";
}

TEST(Connections, APeerDoesNotTakeOurReminders) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  write(near.to(far), "there");
  Doorbell doorbell = Doorbell(Memory::adopt(far.doorbell_memory(), kShmBellLayout).value());
  far.connections->watch().remind(far.connections->find(near.own));
  doorbell.take([](std::uint32_t) {});
  EXPECT_FALSE(far.connections->watch().arm()) << "there is something to look at";
  EXPECT_EQ(look(far), "there");
}

TEST(Connections, PeersBeyondTheBoundAreDeclined) {
  Side far(0, 10, {.ring_bytes = 64 * 1024, .peers_max = 2});
  Side one(1, 1), two(2, 2), three(3, 3);
  meet(one, far);
  meet(two, far);
  ASSERT_TRUE(three.connections->ask(far.own, {}));
  far.connections->attend({});
  EXPECT_EQ(three.events(1).at(0).kind, Kind::declined);
  EXPECT_EQ(far.connections->counters().declined_full, 1u);
}

Users test_users;

Socket connect_to(const Side& side) {
  return Socket::connect(Name::of(side.own, {}).value(), test_users).value();
}

TEST(Connections, AStrangersGreetingIsCountedAndItsDescriptorsClosed) {
  Side near(1, 11);
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  const int shrinkable = ::memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(shrinkable, 4096 + 2 * 64 * 1024), 0);
  Greeting greeting{.ring_bytes = 64 * 1024, .ip = address(2).ip, .port = address(2).port, .epoch = 5};
  Greeting foreign = greeting, huge = greeting, other_bit = greeting;
  foreign.magic = 1;
  huge.ring_bytes = 1u << 31;
  other_bit.doorbell_bit = DoorbellPage::kBits;
  std::uint64_t expected = 0;
  for (const Greeting& one : {greeting, foreign, huge, other_bit}) {
    const auto socket = connect_to(near);
    const std::array<int, 2> descriptors{shrinkable, shrinkable};
    ASSERT_TRUE(socket.send(std::as_bytes(std::span(&one, 1)), descriptors));
    near.connections->attend({});
    EXPECT_EQ(near.connections->counters().declined_greeting, ++expected);
  }
  ::close(shrinkable);
  EXPECT_EQ(open_files(), before);
}

TEST(Connections, NamesInADirectoryMeetTooAndDeadOnesAreSwept) {
  char name[] = "/tmp/fairlead-XXXXXX";
  const std::string directory = ::mkdtemp(name);
  const ConnectionOptions options{.directory = directory, .ring_bytes = 64 * 1024};
  {
    // The file stays, as after SIGKILL.
    const auto dead = Socket::make();
    const auto at = Name::of(address(3), directory).value();
    ASSERT_EQ(::bind(dead.get(), at.kernel(), at.length()), 0);
    ASSERT_EQ(::listen(dead.get(), 1), 0);
  }
  EXPECT_FALSE(std::filesystem::is_empty(directory));
  {
    Side near(1, 11, options), far(2, 12, options);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator()), 2);
    meet(near, far);
    write(near.to(far), "there");
    EXPECT_EQ(look(far), "there");
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove(directory);
}

// Out of descriptors: a waiting connection does not keep us awake, and is accepted when there are descriptors again.
TEST(Connections, WaitsWithThoseItHasNoDescriptorFor) {
  Side near(1, 11), far(2, 12);
  ASSERT_TRUE(near.connections->ask(far.own, {}));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto lowest_free = static_cast<rlim_t>(base::FileDescriptor(::dup(0)).get());
  const rlimit none{lowest_free, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  far.connections->attend({});
  EXPECT_FALSE(is_readable(far.connections->descriptor())) << "it would spin";
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(far.connections->counters().accepts_failed, 1u);
  EXPECT_EQ(far.connections->counters().opened, 0u);
  far.connections->attend(far.connections->next_deadline());
  EXPECT_EQ(far.connections->counters().opened, 1u);
}

TEST(Connections, WhoeverDoesNotAnswerIsDeclinedInTime) {
  Side near(1, 11);
  Users users;
  const auto silent = Listener::open(address(2), {}, users).value();
  ASSERT_TRUE(near.connections->ask(address(2), {}));
  near.connections->attend({});
  EXPECT_NE(near.connections->find(address(2)), Connections::kNone);
  ASSERT_LT(near.connections->next_deadline(), base::kNever);
  near.connections->attend(near.connections->next_deadline());
  EXPECT_EQ(near.connections->find(address(2)), Connections::kNone);
  EXPECT_EQ(near.connections->counters().declined_late, 1u);
  EXPECT_EQ(near.events(1).at(0).kind, Kind::declined);
}

// Each arena costs address space, which is limited.
TEST(Connections, AnArenaLargerThanOursIsNotMapped) {
  const auto showing = [](std::uint64_t bytes) {
    return ConnectionOptions{.ring_bytes = 64 * 1024, .arena_bytes = bytes, .arena_head_bytes = 4096};
  };
  Side near(1, 11, showing(1 << 20)), far(2, 12, showing(64ULL << 30));
  meet(near, far);
  EXPECT_EQ(near.connections->counters().arenas_refused, 1u);
  EXPECT_EQ(near.to(far).arena, nullptr);
  EXPECT_EQ(far.connections->counters().arenas_seen, 1u);
}

}  // namespace
}  // namespace fairlead::shm
