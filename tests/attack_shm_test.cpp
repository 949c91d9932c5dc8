// Strangers of this host attack an engine's connections and shared memory. Each attack worked once. Each test also
// checks that an honest peer is served, so an engine that ignores everything fails. An operation that blocks would take
// an hour. An alarm ends the test in that case.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <vector>

#include "base/lingering_socket_for_tests.hpp"
#include "base/place_for_tests.hpp"
#include "shm/connections.hpp"
#include "shm/proof.hpp"
#include "tests/other_user.hpp"

namespace fairlead::tests {
namespace {

using shm::Connections;
using Kind = shm::ConnectionEvent::Kind;

class AttackedHub : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static const auto hindrance = OtherUser::become_able();
    ASSERT_FALSE(hindrance) << *hindrance;
  }
  void SetUp() override {
    ASSERT_EQ(::geteuid(), 0u);
    ::alarm(100);
  }
  ~AttackedHub() override { ::alarm(0); }

  static std::unique_ptr<Connections> connections(std::uint16_t number, const shm::ConnectionOptions& options = {}) {
    return hub_at(place(number), options);
  }
  static std::unique_ptr<Connections> hub_at(const base::SocketAddress& own, shm::ConnectionOptions options) {
    options.ring_bytes = 64 * 1024;
    return Connections::open(own, own.port, options).value();
  }
  /// Addresses depend on the process id, so child processes get them from the test.
  static base::SocketAddress place(std::uint16_t number) { return base::place_for_tests(number); }

  /// Checks that the victim admits a peer of our own user.
  static void expect_an_honest_peer_is_served(Connections& victim) {
    const auto honest = connections(2);
    ASSERT_TRUE(honest->ask(place(1), {}));
    const std::uint64_t before = victim.counters().opened;
    for (int i = 0; i < 1000 && victim.counters().opened == before; ++i) victim.attend({});
    EXPECT_EQ(victim.counters().opened, before + 1);
    for (int i = 0; i < 1000 && honest->counters().opened == 0; ++i) honest->attend({});
    EXPECT_EQ(honest->counters().opened, 1u);
  }
};

/// Connects to `there` as a stranger's program would.
base::FileDescriptor connect_to(const base::SocketAddress& there) {
  base::FileDescriptor socket = shm::Socket::make();
  const auto name = shm::Name::of(there, {}).value();
  return ::connect(socket.get(), name.kernel(), name.length()) == 0 ? std::move(socket) : base::FileDescriptor();
}

/// Sends bytes with any number of descriptors.
bool send_with(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(16 * sizeof(int))> control{};
  iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

/// Connects and sends a greeting with descriptors. The last descriptor is of a socket whose final close takes an hour,
/// and the receiver holds its last reference.
void greet_with_what_lingers(OtherUser& line, const base::SocketAddress& there, const base::SocketAddress& own,
                             std::size_t descriptors) {
  const base::FileDescriptor socket = connect_to(there);
  const shm::Greeting greeting{.ring_bytes = 64 * 1024, .ip = own.ip, .port = own.port, .epoch = 5};
  base::LingeringSocket lingering;
  std::vector<int> sent(descriptors, socket.get());
  sent.back() = lingering.get();
  if (!send_with(socket.get(), std::as_bytes(std::span(&greeting, 1)), sent)) return;
  lingering.take().reset();
  line.say('s');
  line.hear('e');  // the lingering socket stays until then
}

struct Lingering {
  bool admits_all = false;
  std::size_t descriptors = 1;
};

class WhatLingers : public AttackedHub, public testing::WithParamInterface<Lingering> {
 protected:
  OtherUser greet() const {
    const auto there = place(1), own = place(5);
    return OtherUser(OtherUser::kNobody,
                     [&](OtherUser& line) { greet_with_what_lingers(line, there, own, GetParam().descriptors); });
  }
};

TEST_P(WhatLingers, HoldsUpNobodyWhoTurnsItAway) {
  const auto victim = connections(1, {.admits_all = GetParam().admits_all});
  OtherUser stranger = greet();
  ASSERT_TRUE(stranger.hear('s'));
  victim->attend({});
  const shm::ConnectionCounters& counters = victim->counters();
  EXPECT_EQ(GetParam().admits_all ? counters.declined_greeting : counters.declined_user, 1u);
  expect_an_honest_peer_is_served(*victim);
}

TEST_P(WhatLingers, HoldsUpNobodyWhoEnds) {
  auto victim = connections(1, {.admits_all = GetParam().admits_all});
  OtherUser stranger = greet();
  ASSERT_TRUE(stranger.hear('s'));
  victim.reset();
  victim = connections(1);
  expect_an_honest_peer_is_served(*victim);
}

INSTANTIATE_TEST_SUITE_P(Sent, WhatLingers,
                         testing::Values(Lingering{false, 1}, Lingering{false, 16}, Lingering{true, 1},
                                         Lingering{true, 2}, Lingering{true, 3}, Lingering{true, 4},
                                         Lingering{true, 16}));

// Addresses of others -----------------------------------------------------------------------------------------------

constexpr base::SipKey kPairKey{17, 4}, kOtherKey{18, 4};
const shm::ConnectionOptions kAll{.admits_all = true};

class Impersonated : public AttackedHub {
 protected:
  /// Opens connections at `own` as another user and asks `there` with `key`. Both results are told to the test.
  static void ask_and_tell(OtherUser& line, const base::SocketAddress& own, const base::SocketAddress& there,
                           const base::SipKey& key) {
    const auto connections = hub_at(own, kAll);
    const auto asked = connections->ask(there, {}, key);
    line.say(asked ? 'a' : '?');
    line.hear('g');
    for (int i = 0; i < 1000; ++i) connections->attend({});
    line.say(connections->counters().opened == 1 ? 'o' : 'd');
    line.hear('e');
  }
  static void attend(Connections& connections) {
    for (int i = 0; i < 1000; ++i) connections.attend({});
  }
  /// Addresses in the events of one kind since the last call.
  static std::vector<base::SocketAddress> told(Connections& connections, Kind kind) {
    std::vector<base::SocketAddress> addresses;
    while (const auto event = connections.next_event())
      if (event->kind == kind) addresses.push_back(event->address);
    return addresses;
  }
};

TEST_F(Impersonated, WhoKnowsTheKeyOfTheSessionIsOpened) {
  const auto there = place(1), own = place(5);
  const auto victim = connections(1, kAll);
  OtherUser honest(OtherUser::kNobody, [&](OtherUser& line) { ask_and_tell(line, own, there, kPairKey); });
  ASSERT_TRUE(honest.hear('a'));
  attend(*victim);
  EXPECT_THAT(told(*victim, Kind::claimed), testing::ElementsAre(own));
  EXPECT_EQ(victim->counters().opened, 0u) << "nothing is known of him yet";
  victim->vouch(own, kOtherKey);
  attend(*victim);
  EXPECT_EQ(victim->counters().opened, 0u) << "of a session that has ended";
  victim->vouch(own, kPairKey);
  attend(*victim);
  EXPECT_THAT(told(*victim, Kind::opened), testing::ElementsAre(own));
  honest.say('g');
  EXPECT_TRUE(honest.hear('o'));
}

TEST_F(Impersonated, WhoDoesNotIsNot) {
  const auto there = place(1), own = place(5);
  const auto victim = connections(1, kAll);
  OtherUser liar(OtherUser::kNobody, [&](OtherUser& line) { ask_and_tell(line, own, there, kOtherKey); });
  ASSERT_TRUE(liar.hear('a'));
  attend(*victim);
  victim->vouch(own, kPairKey);
  attend(*victim);
  EXPECT_EQ(victim->counters().opened, 0u);
  victim->attend(victim->next_deadline());
  EXPECT_EQ(victim->counters().declined_proof, 1u);
  liar.say('g');
  EXPECT_TRUE(liar.hear('d'));
}

// The liar has bound the name of another address. Messages to that address are only for its owner.
TEST_F(Impersonated, WhoHasBoundTheNameIsNotGreeted) {
  const auto evil = place(5);
  OtherUser liar(OtherUser::kNobody, [&](OtherUser& line) {
    shm::Users users;
    const auto listener = shm::Listener::open(evil, {}, users).value();
    line.say('o');
    line.hear('g');
    std::byte byte{};
    const auto caught = listener.accept();
    pollfd one{caught ? caught->descriptor() : -1, POLLIN, 0};
    ::poll(&one, 1, -1);
    line.say(::recv(one.fd, &byte, 1, MSG_DONTWAIT) == 0 ? 'n' : 'y');
  });
  ASSERT_TRUE(liar.hear('o'));
  const auto victim = connections(1, kAll);
  const auto asked = victim->ask(evil, {});
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().status, Status::again) << asked.error().message;
  liar.say('g');
  EXPECT_TRUE(liar.hear('n')) << "it learnt something";
}

TEST_F(Impersonated, AnAnswerNeedsTheKeyToo) {
  const auto evil = place(5);
  OtherUser liar(OtherUser::kNobody, [&](OtherUser& line) {
    shm::Users users;
    const auto listener = shm::Listener::open(evil, {}, users).value();
    line.say('o');
    line.hear('g');
    shm::Greeting greeting;
    // The liar reflects the greeting. Its proof is right, but it is a proof of a greeting, not of an answer.
    const auto socket = listener.accept().value();
    const auto letter = socket.receive(std::as_writable_bytes(std::span(&greeting, 1)));
    greeting.ip = evil.ip, greeting.port = evil.port, greeting.user = ::geteuid();
    if (letter) {
      const std::array<int, 1> doorbell{letter->descriptors[1].get()};
      socket.send(std::as_bytes(std::span(&greeting, 1)), doorbell);
    }
    line.say('a');
    line.hear('e');
  });
  ASSERT_TRUE(liar.hear('o'));
  const auto victim = connections(1, kAll);
  ASSERT_TRUE(victim->ask(evil, {}, kPairKey));
  liar.say('g');
  ASSERT_TRUE(liar.hear('a'));
  attend(*victim);
  EXPECT_THAT(told(*victim, Kind::declined), testing::ElementsAre(evil));
  EXPECT_EQ(victim->counters().declined_proof, 1u);
  EXPECT_EQ(victim->counters().opened, 0u);
}

// A third process passes on a greeting that was meant for it. The kernel's credentials name the third process, so the
// proof does not fit.
TEST_F(Impersonated, WhatIsPassedOnIsNotBelieved) {
  const auto there = place(1), own = place(5);
  const auto victim = connections(1, kAll);
  OtherUser liar(OtherUser::kNobody, [&](OtherUser& line) {
    auto memory = shm::Memory::create({4096, 64 * 1024, 2}).value();
    auto doorbell = shm::Memory::create(shm::kShmBellLayout).value();
    shm::Greeting greeting{.ring_bytes = 64 * 1024, .ip = own.ip, .port = own.port, .epoch = 5, .user = 0};
    greeting.proof = shm::proof_of_greeting(kPairKey, greeting);
    const std::array<int, 2> descriptors{memory.descriptor(), doorbell.descriptor()};
    const base::FileDescriptor socket = connect_to(there);
    line.say(send_with(socket.get(), std::as_bytes(std::span(&greeting, 1)), descriptors) ? 'a' : '?');
    line.hear('e');
  });
  ASSERT_TRUE(liar.hear('a'));
  attend(*victim);
  victim->vouch(own, kPairKey);
  EXPECT_EQ(victim->counters().declined_proof, 1u);
  EXPECT_EQ(victim->counters().opened, 0u);
}

// Names of sockets belong to this host. A process cannot claim another host's address by binding its name, not even one
// of our own user.
TEST_F(Impersonated, NobodyHereIsAtAnAddressOfAnotherHost) {
  const auto elsewhere = base::SocketAddress::from_ip("192.0.2.7", 20480).value();
  const auto victim = connections(1);
  const auto liar = hub_at(elsewhere, {});
  const auto asked = victim->ask(elsewhere, {});
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().status, Status::not_permitted);
  ASSERT_TRUE(liar->ask(place(1), {}));
  attend(*victim);
  EXPECT_EQ(victim->counters().declined_address, 2u);
  EXPECT_EQ(victim->counters().opened, 0u);
  expect_an_honest_peer_is_served(*victim);
}

// Places and memory ---------------------------------------------------------------------------------------------------

// This peer never got our arena. It therefore does not count as a reader that the owner waits for.
TEST_F(Impersonated, AStrangerIsNoVisitorOfWhatItHasNot) {
  const auto there = place(1), own = place(5);
  shm::ConnectionOptions options = kAll;
  options.arena_bytes = 1 << 20;
  options.arena_head_bytes = 4096;
  const auto victim = connections(1, options);
  constexpr std::uint32_t kSlot = 77;
  OtherUser liar(OtherUser::kNobody, [&](OtherUser& line) {
    const auto connections = hub_at(own, kAll);
    const auto asked = connections->ask(there, {}, kPairKey);
    line.say('a');
    line.hear('g');
    attend(*connections);
    shm::Connection& peer = connections->peer(*asked);
    if (peer.state != shm::Connection::State::open) return line.say('?');
    peer.enter(shm::Use::of_region(kSlot, 0));
    line.say('i');
    line.hear('e');
  });
  ASSERT_TRUE(liar.hear('a'));
  attend(*victim);
  victim->vouch(own, kPairKey);
  attend(*victim);
  ASSERT_EQ(victim->counters().opened, 1u);
  liar.say('g');
  ASSERT_TRUE(liar.hear('i'));
  EXPECT_TRUE(victim->read_sections().readers(shm::Withdrawn::region(kSlot)).empty());
  EXPECT_FALSE(victim->read_sections().is_used(shm::Withdrawn::region(kSlot)));
}

// All peers share the doorbell. A peer that clears the bits of others delays them, but only for milliseconds.
TEST_F(Impersonated, WhoeverSilencesTheDoorbellHoldsUpOthersForMillisecondsOnly) {
  const auto there = place(1), own = place(5);
  const auto victim = connections(1, kAll);
  OtherUser liar(OtherUser::kNobody, [&](OtherUser& line) {
    const auto connections = hub_at(own, kAll);
    const auto asked = connections->ask(there, {}, kPairKey);
    line.say('a');
    line.hear('g');
    attend(*connections);
    line.say(connections->counters().opened == 1 ? 'o' : '?');
    line.hear('c');
    connections->peer(*asked).doorbell.take([](std::uint32_t) {});
    line.say('c');
    line.hear('e');
  });
  ASSERT_TRUE(liar.hear('a'));
  attend(*victim);
  victim->vouch(own, kPairKey);
  attend(*victim);
  liar.say('g');
  ASSERT_TRUE(liar.hear('o'));
  const auto honest = connections(2);
  ASSERT_TRUE(honest->ask(there, {}));
  attend(*victim);
  attend(*honest);
  const auto looks_at = [&](std::uint32_t slot) {
    bool does = false;
    victim->watch().begin_look();
    for (std::uint32_t one = victim->watch().next(); one != Connections::kNone; one = victim->watch().next())
      does |= one == slot;
    return does;
  };
  const std::uint32_t slot = victim->find(place(2));
  ASSERT_NE(slot, Connections::kNone);
  ASSERT_TRUE(looks_at(slot)) << "it is new";
  ASSERT_TRUE(victim->watch().arm()) << "from now on it has to ring";
  victim->watch().disarm();
  shm::Connection& to = honest->peer(honest->find(there));
  ASSERT_NE(to.writer.reserve(8), nullptr);
  to.writer.publish(8, to.reader.read());
  to.alert();
  liar.say('c');
  ASSERT_TRUE(liar.hear('c'));
  EXPECT_FALSE(looks_at(slot)) << "it has been silenced";
  ASSERT_LT(victim->next_deadline(), base::Instant{} + std::chrono::milliseconds(11));
  victim->attend(victim->next_deadline());
  EXPECT_TRUE(looks_at(slot));
}

// Silent connections: each user may have only a few, a new one replaces the oldest, and each is closed after
// a short time.
TEST_F(Impersonated, AUserWithManyConnectionsKeepsOutOnlyItself) {
  constexpr std::uint32_t kMany = 40, kOfOneUser = 16;
  const auto there = place(1), own = place(5);
  shm::ConnectionOptions options = kAll;
  options.peers_max = 128;
  const auto victim = connections(1, options);
  OtherUser crowd(OtherUser::kNobody, [&](OtherUser& line) {
    std::vector<base::FileDescriptor> sockets;
    for (std::uint32_t i = 0; i < kMany; ++i) sockets.push_back(connect_to(there));
    line.say('c');
    line.hear('e');
  });
  ASSERT_TRUE(crowd.hear('c'));
  attend(*victim);
  EXPECT_EQ(victim->counters().declined_crowd, kMany - kOfOneUser);
  EXPECT_EQ(victim->peers().size(), kOfOneUser);
  OtherUser other(OtherUser::kSomebody, [&](OtherUser& line) { ask_and_tell(line, own, there, kPairKey); });
  ASSERT_TRUE(other.hear('a'));
  attend(*victim);
  EXPECT_THAT(told(*victim, Kind::claimed), testing::ElementsAre(own));
  expect_an_honest_peer_is_served(*victim);
  ASSERT_LT(victim->next_deadline(), base::kNever);
  victim->attend(victim->next_deadline());
  EXPECT_EQ(victim->counters().declined_late, kOfOneUser);
}

// Users that a user namespace does not know ---------------------------------------------------------------------------

const shm::ConnectionOptions kShowing{.arena_bytes = 1 << 20, .arena_head_bytes = 4096};

/// Enters a new user namespace in which our user has the id `number`. 0: our user is not mapped.
bool is_apart_as(std::uint32_t number) {
  const std::uint32_t user = ::geteuid();
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // otherwise root owns our files in /proc
  if (::unshare(CLONE_NEWUSER) != 0) return false;
  return number == 0 ||
         static_cast<bool>(std::ofstream("/proc/self/uid_map") << fmt::format("{} {} 1", number, user) << std::flush);
}

class AttackedNamespace : public AttackedHub, public testing::WithParamInterface<std::uint32_t> {
 protected:
  /// Connects to the victim as `user`: 'o' if opened with the victim's arena, 'd' if declined.
  static char asked_as(std::uint32_t user, const base::SocketAddress& own, const base::SocketAddress& there,
                       OtherUser& victim) {
    OtherUser asking(user, [&](OtherUser& line) {
      shm::ConnectionOptions options = kShowing;
      options.admits_all = true;
      const auto connections = hub_at(own, options);
      if (!connections->ask(there, {}, kPairKey)) return line.say('?');
      line.say('a');
      line.hear('g');
      for (int i = 0; i < 1000; ++i) connections->attend({});
      line.say(connections->counters().arenas_seen == 1 ? 'o' : connections->counters().opened == 0 ? 'd' : '?');
    });
    if (!asking.hear('a')) return '?';
    victim.say('g');
    if (!victim.hear('g')) return '?';
    asking.say('g');
    return asking.hear_any();
  }
};

TEST_P(AttackedNamespace, TakesNoStrangerForItself) {
  const auto there = place(1), evil = place(5), friendly = place(6);
  OtherUser victim(OtherUser::kSomebody, [&](OtherUser& line) {
    if (!is_apart_as(GetParam())) return line.say('?');
    const auto connections = hub_at(there, kShowing);
    line.say('o');
    while (line.hear('g')) {
      for (int i = 0; i < 1000; ++i) connections->attend({});
      line.say('g');
    }
  });
  ASSERT_TRUE(victim.hear('o')) << "no user namespace";
  EXPECT_EQ(asked_as(OtherUser::kSomebody + 1, evil, there, victim), 'd');
  // The victim admits its own user if it can tell that user from others.
  const bool is_known = GetParam() != 0 && GetParam() != OtherUser::kNobody;
  EXPECT_EQ(asked_as(OtherUser::kSomebody, friendly, there, victim), is_known ? 'o' : 'd');
}

TEST_P(AttackedNamespace, GreetsNoStranger) {
  const auto there = place(1), evil = place(5);
  shm::ConnectionOptions options = kShowing;
  options.admits_all = true;
  OtherUser attacker(OtherUser::kSomebody + 1, [&](OtherUser& line) {
    const auto connections = hub_at(evil, options);
    line.say('o');
    line.hear('e');
  });
  ASSERT_TRUE(attacker.hear('o'));
  OtherUser victim(OtherUser::kSomebody, [&](OtherUser& line) {
    if (!is_apart_as(GetParam())) return line.say('?');
    const auto connections = hub_at(there, kShowing);
    const auto asked = connections->ask(evil, {});
    line.say(!asked && asked.error().status == Status::not_permitted ? 'n' : 'y');
  });
  EXPECT_TRUE(victim.hear('n'));
}

INSTANTIATE_TEST_SUITE_P(KnownAs, AttackedNamespace, testing::Values(0U, OtherUser::kNobody, 1000U));

}  // namespace
}  // namespace fairlead::tests
