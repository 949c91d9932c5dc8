// Strangers of this host against an engine's connections and shared memory. Each attack is one that worked; beside it
// stands what an honest peer does afterwards, so that a deaf engine does not pass. What would block does so for an
// hour: an alarm ends the test then.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
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
#include "path/shm_hub.hpp"
#include "tests/other_user.hpp"

namespace fairlead::tests {
namespace {

using path::ShmHub;
using Kind = path::ShmEvent::Kind;

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

  static std::unique_ptr<ShmHub> hub(std::uint16_t number, const path::ShmOptions& options = {}) {
    return hub_at(place(number), options);
  }
  static std::unique_ptr<ShmHub> hub_at(const base::SocketAddress& own, path::ShmOptions options) {
    options.ring_bytes = 64 * 1024;
    return ShmHub::open(own, own.port, options).value();
  }
  /// Of this process: children are told theirs.
  static base::SocketAddress place(std::uint16_t number) { return base::place_for_tests(number); }

  /// Somebody of our own user is served as if nothing had happened.
  static void expect_an_honest_peer_is_served(ShmHub& victim) {
    const auto honest = hub(2);
    ASSERT_TRUE(honest->ask(place(1)));
    const std::uint64_t before = victim.counters().opened;
    for (int i = 0; i < 1000 && victim.counters().opened == before; ++i) victim.attend();
    EXPECT_EQ(victim.counters().opened, before + 1);
    for (int i = 0; i < 1000 && honest->counters().opened == 0; ++i) honest->attend();
    EXPECT_EQ(honest->counters().opened, 1u);
  }
};

/// A connection to `there`, as a stranger's program makes it.
base::FileDescriptor connect_to(const base::SocketAddress& there) {
  base::FileDescriptor socket = path::ShmSocket::make();
  const auto name = path::ShmName::of(there, {}).value();
  return ::connect(socket.get(), name.kernel(), name.length()) == 0 ? std::move(socket) : base::FileDescriptor();
}

/// Bytes with descriptors, however many.
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

/// Connects, and sends a greeting with descriptors, of which the last close of the last one takes an hour. That is left
/// to the other side.
void greet_with_what_lingers(OtherUser& line, const base::SocketAddress& there, const base::SocketAddress& own,
                             std::size_t descriptors) {
  const base::FileDescriptor socket = connect_to(there);
  const path::ShmGreeting greeting{.ring_bytes = 64 * 1024, .ip = own.ip, .port = own.port, .epoch = 5};
  base::LingeringSocket lingering;
  std::vector<int> sent(descriptors, socket.get());
  sent.back() = lingering.get();
  if (!send_with(socket.get(), std::as_bytes(std::span(&greeting, 1)), sent)) return;
  lingering.take().reset();
  line.say('s');
  line.hear('e');  // until then nothing ends the lingering
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
  const auto victim = hub(1, {.admits_all = GetParam().admits_all});
  OtherUser stranger = greet();
  ASSERT_TRUE(stranger.hear('s'));
  victim->attend();
  const path::ShmCounters& counters = victim->counters();
  EXPECT_EQ(GetParam().admits_all ? counters.declined_greeting : counters.declined_user, 1u);
  expect_an_honest_peer_is_served(*victim);
}

TEST_P(WhatLingers, HoldsUpNobodyWhoEnds) {
  auto victim = hub(1, {.admits_all = GetParam().admits_all});
  OtherUser stranger = greet();
  ASSERT_TRUE(stranger.hear('s'));
  victim.reset();
  victim = hub(1);
  expect_an_honest_peer_is_served(*victim);
}

INSTANTIATE_TEST_SUITE_P(Sent, WhatLingers,
                         testing::Values(Lingering{false, 1}, Lingering{false, 16}, Lingering{true, 1},
                                         Lingering{true, 2}, Lingering{true, 3}, Lingering{true, 4},
                                         Lingering{true, 16}));

// Users that a user namespace does not know ---------------------------------------------------------------------------

const path::ShmOptions kShowing{.arena_bytes = 1 << 20, .arena_head_bytes = 4096};

/// In a user namespace of its own, where our user has that number; 0: none.
bool is_apart_as(std::uint32_t number) {
  const std::uint32_t user = ::geteuid();
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // else our files in /proc are root's
  if (::unshare(CLONE_NEWUSER) != 0) return false;
  return number == 0 ||
         static_cast<bool>(std::ofstream("/proc/self/uid_map") << fmt::format("{} {} 1", number, user) << std::flush);
}

class AttackedNamespace : public AttackedHub, public testing::WithParamInterface<std::uint32_t> {
 protected:
  /// Asks for the victim as that user: 'o' if it was opened with the victim's memory, 'd' if it was declined.
  static char asked_as(std::uint32_t user, const base::SocketAddress& own, const base::SocketAddress& there,
                       OtherUser& victim) {
    OtherUser asking(user, [&](OtherUser& line) {
      path::ShmOptions options = kShowing;
      options.admits_all = true;
      const auto hub = hub_at(own, options);
      if (!hub->ask(there)) return line.say('?');
      line.say('a');
      line.hear('g');
      for (int i = 0; i < 1000; ++i) hub->attend();
      line.say(hub->counters().arenas_seen == 1 ? 'o' : hub->counters().opened == 0 ? 'd' : '?');
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
    const auto hub = hub_at(there, kShowing);
    line.say('o');
    while (line.hear('g')) {
      for (int i = 0; i < 1000; ++i) hub->attend();
      line.say('g');
    }
  });
  ASSERT_TRUE(victim.hear('o')) << "no user namespace";
  EXPECT_EQ(asked_as(OtherUser::kSomebody + 1, evil, there, victim), 'd');
  // Where its own user can be told from others, it is admitted.
  const bool is_known = GetParam() != 0 && GetParam() != OtherUser::kNobody;
  EXPECT_EQ(asked_as(OtherUser::kSomebody, friendly, there, victim), is_known ? 'o' : 'd');
}

TEST_P(AttackedNamespace, GreetsNoStranger) {
  const auto there = place(1), evil = place(5);
  path::ShmOptions options = kShowing;
  options.admits_all = true;
  OtherUser attacker(OtherUser::kSomebody + 1, [&](OtherUser& line) {
    const auto hub = hub_at(evil, options);
    line.say('o');
    line.hear('e');
  });
  ASSERT_TRUE(attacker.hear('o'));
  OtherUser victim(OtherUser::kSomebody, [&](OtherUser& line) {
    if (!is_apart_as(GetParam())) return line.say('?');
    const auto hub = hub_at(there, kShowing);
    const auto asked = hub->ask(evil);
    line.say(!asked && asked.error().status == Status::not_permitted ? 'n' : 'y');
  });
  EXPECT_TRUE(victim.hear('n'));
}

INSTANTIATE_TEST_SUITE_P(KnownAs, AttackedNamespace, testing::Values(0U, OtherUser::kNobody, 1000U));

}  // namespace
}  // namespace fairlead::tests
