#include "shm/hub.hpp"

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

using Kind = ShmEvent::Kind;

base::SocketAddress address(std::uint16_t number) {
  return base::place_for_tests(number);
}

struct Side {
  explicit Side(std::uint16_t number, std::uint64_t epoch, const ShmOptions& options = {.ring_bytes = 64 * 1024})
      : own(address(number)), hub(ShmHub::open(own, epoch, options).value()) {}

  /// Events until there are `count`, or patience ends.
  std::vector<ShmEvent> events(std::size_t count) {
    std::vector<ShmEvent> seen;
    for (int i = 0; i < 1000 && seen.size() < count; ++i) {
      hub->attend({});
      while (auto event = hub->next_event()) seen.push_back(*event);
    }
    return seen;
  }
  ShmPeer& to(const Side& other) { return hub->peer(hub->find(other.own)); }
  int bell_memory() const { return hub->watch().bell().memory_descriptor(); }

  base::SocketAddress own;
  std::unique_ptr<ShmHub> hub;
};

void meet(Side& asking, Side& asked) {
  ASSERT_TRUE(asking.hub->ask(asked.own, {}));
  ASSERT_EQ(asked.events(1).at(0).kind, Kind::opened);
  ASSERT_EQ(asking.events(1).at(0).kind, Kind::opened);
}

void write(ShmPeer& peer, std::string_view text) {
  std::byte* body = peer.writer.reserve(text.size());
  ASSERT_NE(body, nullptr);
  std::memcpy(body, text.data(), text.size());
  peer.writer.publish(text.size(), peer.reader.read());
  peer.alert();
}

std::string look(Side& side) {
  std::string seen;
  side.hub->look([&](std::uint32_t slot) {
    ShmPeer& peer = side.hub->peer(slot);
    while (peer.reader.has_record()) {
      const auto record = peer.reader.record();
      if (!record) return;
      seen.append(reinterpret_cast<const char*>(record->body.data()), record->body.size());
      peer.reader.pass(record->body.size());
    }
    peer.reader.tell();
  });
  return seen;
}

bool is_readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

TEST(ShmHub, TwoMeetAndTalk) {
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

TEST(ShmHub, OnePairStandsIfBothAskAtOnce) {
  Side low(1, 11), high(2, 12);
  ASSERT_TRUE(low.hub->ask(high.own, {}));
  ASSERT_TRUE(high.hub->ask(low.own, {}));
  for (int i = 0; i < 10; ++i) {
    low.hub->attend({});
    high.hub->attend({});
  }
  EXPECT_EQ(low.to(high).state, ShmPeer::State::open);
  EXPECT_EQ(high.to(low).state, ShmPeer::State::open);
  EXPECT_TRUE(low.to(high).has_asked);
  EXPECT_FALSE(high.to(low).has_asked);
  write(low.to(high), "there");
  EXPECT_EQ(look(high), "there");
}

TEST(ShmHub, NobodyThereIsRefusedAtOnce) {
  Side near(1, 11);
  const auto asked = near.hub->ask(address(9), {});
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().status, Status::refused);
  EXPECT_EQ(near.hub->find(address(9)), ShmHub::kNone);
}

TEST(ShmHub, ADeathIsNoticedAndWhatWasWrittenBeforeCanBeRead) {
  Side near(1, 11);
  {
    Side far(2, 12);
    meet(near, far);
    write(far.to(near), "last words");
  }
  EXPECT_TRUE(is_readable(near.hub->descriptor()));
  const auto events = near.events(1);
  ASSERT_EQ(events.at(0).kind, Kind::ended);
  EXPECT_EQ(look(near), "last words");
  near.hub->forget(events[0].slot);
  EXPECT_EQ(near.hub->find(address(2)), ShmHub::kNone);
  Side next(2, 13);
  meet(near, next);
  write(next.to(near), "again");
  EXPECT_EQ(look(near), "again");
}

TEST(ShmHub, ASleeperIsWokenOnceAndSomebodyAwakeNever) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  look(far);
  ASSERT_TRUE(far.hub->arm());
  EXPECT_FALSE(is_readable(far.hub->descriptor()));
  write(near.to(far), "1");
  EXPECT_TRUE(is_readable(far.hub->descriptor()));
  far.hub->disarm();
  EXPECT_TRUE(far.events(1).empty()) << "it is no more than a wake-up";
  EXPECT_FALSE(is_readable(far.hub->descriptor()));
  EXPECT_EQ(look(far), "1");  // it is watched from now on
  write(near.to(far), "2");
  EXPECT_FALSE(is_readable(far.hub->descriptor()));
  EXPECT_FALSE(far.hub->arm()) << "it must not sleep: there is a record";
  EXPECT_EQ(look(far), "2");
}

// Another thread that polls may take what was meant for the sleeper, and then leave.
TEST(ShmHub, ASleeperIsRousedByWhoeverTakesItsWakeUp) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  look(far);
  ASSERT_TRUE(far.hub->arm());
  write(near.to(far), "1");
  far.hub->attend({});
  EXPECT_TRUE(is_readable(far.hub->descriptor()));
  EXPECT_EQ(look(far), "1");
  far.hub->disarm();
  EXPECT_FALSE(is_readable(far.hub->descriptor()));

  ASSERT_TRUE(far.hub->arm());
  far.hub->remind(far.hub->find(near.own));
  EXPECT_TRUE(is_readable(far.hub->descriptor()));
  far.hub->disarm();
  look(far);

  ASSERT_TRUE(far.hub->arm());
  static_cast<void>(near.to(far).bell.ring(near.to(far).bell_bit));  // and wakes nobody
  EXPECT_FALSE(is_readable(far.hub->descriptor()));
  look(far);
  EXPECT_TRUE(is_readable(far.hub->descriptor()));
  far.hub->disarm();
}

TEST(ShmHub, WhoNeverTakesItsWakeUpsHoldsUpNobody) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  for (int i = 0; i < 2000; ++i) {
    far.hub->arm();
    near.to(far).ring();
    far.hub->disarm();
  }
  EXPECT_TRUE(far.events(1).empty());
  EXPECT_FALSE(is_readable(far.hub->descriptor()));
}

TEST(ShmHub, MoreBusyPeersThanAreWatchedLoseNothing) {
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

TEST(ShmHub, AQuietPeerIsNoLongerLookedAtUntilItRings) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  write(near.to(far), "1");
  EXPECT_EQ(look(far), "1");
  EXPECT_TRUE(far.to(near).is_watched);
  for (int i = 0; i < 200'000 && far.to(near).is_watched; ++i) EXPECT_EQ(look(far), "");
  EXPECT_FALSE(far.to(near).is_watched);
  EXPECT_EQ(far.hub->counters().unwatched, 1u);
  write(near.to(far), "2");
  EXPECT_EQ(look(far), "2");
  EXPECT_TRUE(far.to(near).is_watched);
}

TEST(ShmHub, APeerWithTrafficStaysWatched) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  write(near.to(far), "1");
  look(far);
  for (int i = 0; i < 200'000; ++i) {
    if (i % 10'000 == 0) {
      write(near.to(far), "x");
      far.hub->note_traffic(far.hub->find(near.own));
    }
    look(far);
  }
  EXPECT_TRUE(far.to(near).is_watched);
  EXPECT_EQ(far.hub->counters().unwatched, 0u);
}

/// Our side of the page that the two share, as the other may write to it.
ShmSide& own_side_as_seen_by(ShmPeer& peer) {
  return const_cast<ShmSide&>(*peer.other);
}

TEST(ShmHub, APeerDoesNotDecideWhomWeWatch) {
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
  near.hub->end(near.hub->find(far.own), "tired");
  const auto events = far.events(1);
  ASSERT_EQ(events.at(0).kind, Kind::ended);
  far.hub->forget(events[0].slot);
  EXPECT_FALSE(far.hub->is_watching()) << "nothing is left of it";
  EXPECT_TRUE(far.hub->arm());
  far.hub->disarm();
  look(far);
}

TEST(ShmHub, APeerDoesNotDecideThatWeAreInItsArena) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  ShmSide& told = own_side_as_seen_by(near.to(far));
  told.visits.store(1);  // as if we were inside
  far.to(near).enter();
  EXPECT_EQ(told.visits.load() % 2, 1u) << "we are, and say so";
  told.visits.store(40);
  far.to(near).leave();
  EXPECT_EQ(told.visits.load() % 2, 0u);
}

TEST(ShmHub, APeerDoesNotTakeOurReminders) {
  Side near(1, 11), far(2, 12);
  meet(near, far);
  write(near.to(far), "there");
  ShmBell bell = ShmBell(ShmMemory::adopt(far.bell_memory(), kShmBellLayout).value());
  far.hub->remind(far.hub->find(near.own));
  bell.take([](std::uint32_t) {});
  EXPECT_FALSE(far.hub->arm()) << "there is something to look at";
  EXPECT_EQ(look(far), "there");
}

TEST(ShmHub, PeersBeyondTheBoundAreDeclined) {
  Side far(0, 10, {.ring_bytes = 64 * 1024, .peers_max = 2});
  Side one(1, 1), two(2, 2), three(3, 3);
  meet(one, far);
  meet(two, far);
  ASSERT_TRUE(three.hub->ask(far.own, {}));
  far.hub->attend({});
  EXPECT_EQ(three.events(1).at(0).kind, Kind::declined);
  EXPECT_EQ(far.hub->counters().declined_full, 1u);
}

ShmUsers test_users;

ShmSocket connect_to(const Side& side) {
  return ShmSocket::connect(ShmName::of(side.own, {}).value(), test_users).value();
}

TEST(ShmHub, AStrangersGreetingIsCountedAndItsDescriptorsClosed) {
  Side near(1, 11);
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  const int shrinkable = ::memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(shrinkable, 4096 + 2 * 64 * 1024), 0);
  ShmGreeting greeting{.ring_bytes = 64 * 1024, .ip = address(2).ip, .port = address(2).port, .epoch = 5};
  ShmGreeting foreign = greeting, huge = greeting, other_bit = greeting;
  foreign.magic = 1;
  huge.ring_bytes = 1u << 31;
  other_bit.bell_bit = ShmBellPage::kBits;
  std::uint64_t expected = 0;
  for (const ShmGreeting& one : {greeting, foreign, huge, other_bit}) {
    const auto socket = connect_to(near);
    const std::array<int, 2> descriptors{shrinkable, shrinkable};
    ASSERT_TRUE(socket.send(std::as_bytes(std::span(&one, 1)), descriptors));
    near.hub->attend({});
    EXPECT_EQ(near.hub->counters().declined_greeting, ++expected);
  }
  ::close(shrinkable);
  EXPECT_EQ(open_files(), before);
}

TEST(ShmHub, NamesInADirectoryMeetTooAndDeadOnesAreSwept) {
  char name[] = "/tmp/fairlead-XXXXXX";
  const std::string directory = ::mkdtemp(name);
  const ShmOptions options{.directory = directory, .ring_bytes = 64 * 1024};
  {
    // Its file stays, as after SIGKILL.
    const auto dead = ShmSocket::make();
    const auto at = ShmName::of(address(3), directory).value();
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

// Out of descriptors: whoever waits at the socket does not keep us awake, and is taken when there are some again.
TEST(ShmHub, WaitsWithThoseItHasNoDescriptorFor) {
  Side near(1, 11), far(2, 12);
  ASSERT_TRUE(near.hub->ask(far.own, {}));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto lowest_free = static_cast<rlim_t>(base::FileDescriptor(::dup(0)).get());
  const rlimit none{lowest_free, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  far.hub->attend({});
  EXPECT_FALSE(is_readable(far.hub->descriptor())) << "it would spin";
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(far.hub->counters().accepts_failed, 1u);
  EXPECT_EQ(far.hub->counters().opened, 0u);
  far.hub->attend(far.hub->next_deadline());
  EXPECT_EQ(far.hub->counters().opened, 1u);
}

TEST(ShmHub, WhoeverDoesNotAnswerIsDeclinedInTime) {
  Side near(1, 11);
  ShmUsers users;
  const auto silent = ShmListener::open(address(2), {}, users).value();
  ASSERT_TRUE(near.hub->ask(address(2), {}));
  near.hub->attend({});
  EXPECT_NE(near.hub->find(address(2)), ShmHub::kNone);
  ASSERT_LT(near.hub->next_deadline(), base::kNever);
  near.hub->attend(near.hub->next_deadline());
  EXPECT_EQ(near.hub->find(address(2)), ShmHub::kNone);
  EXPECT_EQ(near.hub->counters().declined_late, 1u);
  EXPECT_EQ(near.events(1).at(0).kind, Kind::declined);
}

// Each costs address space, of which there is not so much.
TEST(ShmHub, AnArenaLargerThanOursIsNotMapped) {
  const auto showing = [](std::uint64_t bytes) {
    return ShmOptions{.ring_bytes = 64 * 1024, .arena_bytes = bytes, .arena_head_bytes = 4096};
  };
  Side near(1, 11, showing(1 << 20)), far(2, 12, showing(64ULL << 30));
  meet(near, far);
  EXPECT_EQ(near.hub->counters().arenas_refused, 1u);
  EXPECT_EQ(near.to(far).arena, nullptr);
  EXPECT_EQ(far.hub->counters().arenas_seen, 1u);
}

}  // namespace
}  // namespace fairlead::shm
