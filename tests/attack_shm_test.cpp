// Strangers of this host against an engine's connections and shared memory. Each attack is one that worked; beside it
// stands what an honest peer does afterwards, so that a deaf engine does not pass. What would block does so for an
// hour: an alarm ends the test then.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
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

  static std::unique_ptr<ShmHub> hub(std::uint16_t number, path::ShmOptions options = {}) {
    options.ring_bytes = 64 * 1024;
    return ShmHub::open(place(number), number, options).value();
  }
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

}  // namespace
}  // namespace fairlead::tests
