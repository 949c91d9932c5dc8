#include "path/group_sockets.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "path/udp_path.hpp"

namespace fairlead::path {
namespace {

base::SocketAddress at(const char* ip, std::uint16_t port = 0) {
  return *base::SocketAddress::from_ip(ip, port);
}
/// An address of this process alone.
base::SocketAddress group_for_test(std::uint8_t last, std::uint16_t port = 29'999) {
  base::SocketAddress group = at("239.81.0.0", port);
  group.ip[14] = static_cast<std::uint8_t>(::getpid());
  group.ip[15] = last;
  return group;
}

/// Collects until this many have come, for half a minute at most.
std::vector<std::string> texts_of(GroupSockets& sockets, std::size_t most, base::SocketAddress* from = nullptr) {
  std::vector<std::string> texts;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (texts.size() < most && std::chrono::steady_clock::now() < end) {
    for (const GroupSockets::Received& each : sockets.collect()) {
      texts.emplace_back(reinterpret_cast<const char*>(each.bytes.data()), each.bytes.size());
      if (from != nullptr) *from = each.from;
    }
  }
  return texts;
}

int send_text(GroupSockets& from, const base::SocketAddress& group, std::string text) {
  const iovec piece{text.data(), text.size()};
  return from.send(group, {&piece, 1}, 0);
}

TEST(GroupSockets, BringEachDatagramToAllThatJoinedItsGroup) {
  GroupSockets first(at("127.0.0.1")), second(at("127.0.0.2")), sender(at("127.0.0.3"));
  const base::SocketAddress group = group_for_test(1), other = group_for_test(2);
  ASSERT_TRUE(first.join(group));
  ASSERT_TRUE(second.join(group));
  ASSERT_TRUE(second.join(other));
  ASSERT_EQ(send_text(sender, other, "two"), 0);
  ASSERT_EQ(send_text(sender, group, std::string(4136, 'x')), 0) << "longer than a frame";
  base::SocketAddress from;
  EXPECT_EQ(texts_of(first, 1, &from), std::vector<std::string>{std::string(4136, 'x')});
  EXPECT_EQ(from.ip_text(), "127.0.0.3");
  auto both = texts_of(second, 2);
  std::ranges::sort(both, {}, &std::string::size);
  EXPECT_EQ(both, (std::vector<std::string>{"two", std::string(4136, 'x')}));
}

TEST(GroupSockets, LeaveAsOftenAsTheyJoined) {
  GroupSockets sockets(at("127.0.0.1"));
  const base::SocketAddress group = group_for_test(3);
  ASSERT_TRUE(sockets.join(group));
  ASSERT_TRUE(sockets.join(group));
  sockets.leave(group);
  ASSERT_EQ(send_text(sockets, group, "still"), 0);
  EXPECT_EQ(texts_of(sockets, 1), std::vector<std::string>{"still"});
  sockets.leave(group);
  EXPECT_FALSE(sockets.is_any_joined());
  ASSERT_TRUE(sockets.join(group_for_test(4)));
  ASSERT_EQ(send_text(sockets, group, "nobody"), 0);
  ASSERT_EQ(send_text(sockets, group_for_test(4), "behind"), 0);
  EXPECT_EQ(texts_of(sockets, 1), std::vector<std::string>{"behind"});
}

// A child keeps the socket of a group that its parent leaves.
TEST(GroupSockets, AreNotWokenByWhatAChildOfForkHas) {
  GroupSockets sockets(at("127.0.0.1")), witness(at("127.0.0.2"));
  const base::SocketAddress group = group_for_test(8);
  ASSERT_TRUE(sockets.join(group));
  ASSERT_TRUE(witness.join(group));
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    char none = 0;
    ::_exit(::read(ends[0], &none, 1) == 0 ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  ::close(ends[0]);
  sockets.leave(group);
  ASSERT_EQ(send_text(witness, group, "late"), 0);
  EXPECT_EQ(texts_of(witness, 1), std::vector<std::string>{"late"});
  pollfd poll{.fd = sockets.descriptor(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&poll, 1, 0), 0);
  EXPECT_TRUE(sockets.collect().empty());
  ::close(ends[1]);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(GroupSockets, HandUpWhatIsTooLongEmpty) {
  GroupSockets sockets(at("127.0.0.1"));
  ASSERT_TRUE(sockets.join(group_for_test(5)));
  ASSERT_EQ(send_text(sockets, group_for_test(5), std::string(GroupSockets::kDatagramMost + 1, 'x')), 0);
  EXPECT_EQ(texts_of(sockets, 1), std::vector<std::string>{""});
}

TEST(GroupSockets, SayWhyAGroupCannotBeJoinedAndWhatHelps) {
  GroupSockets nowhere(at("192.0.2.201"));
  const auto joined = nowhere.join(group_for_test(6));
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().status, Status::not_available);
  EXPECT_NE(joined.error().system_errno, 0);
  EXPECT_NE(joined.error().message.find("192.0.2.201"), std::string::npos) << joined.error().message;
  EXPECT_NE(joined.error().message.find("(ip addr)"), std::string::npos) << joined.error().message;
  EXPECT_EQ(nowhere.send(group_for_test(6), {}, 1), EADDRNOTAVAIL);
  GroupSockets many(at("127.0.0.1"));
  for (std::uint8_t i = 0; i < GroupSockets::kGroupsMost; ++i) ASSERT_TRUE(many.join(group_for_test(i)));
  EXPECT_EQ(many.join(group_for_test(100)).error().status, Status::no_memory);
}

TEST(GroupSockets, WakeWhoeverWaitsForThePath) {
  const auto path = UdpPath::open({.local = at("127.0.0.1")});
  ASSERT_TRUE(path);
  GroupSockets* const groups = (*path)->groups();
  ASSERT_NE(groups, nullptr);
  ASSERT_TRUE(groups->join(group_for_test(7)));
  pollfd poll{.fd = (*path)->descriptor(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&poll, 1, 0), 0);
  ASSERT_EQ(send_text(*groups, group_for_test(7), "wake"), 0);
  EXPECT_EQ(::poll(&poll, 1, 30'000), 1);
  std::array<Arrival, 4> arrivals;
  EXPECT_EQ((*path)->collect(arrivals, {}), 0U) << "nothing for the link";
  EXPECT_EQ(texts_of(*groups, 1), std::vector<std::string>{"wake"});
  EXPECT_EQ((*UdpPath::open({.local = at("0.0.0.0")}))->groups(), nullptr) << "of no interface";
}

}  // namespace
}  // namespace fairlead::path
