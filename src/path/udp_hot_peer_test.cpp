// Connected sockets beside the main one: which socket gets which datagram, before, while and after a peer is hot.

#include <gtest/gtest.h>

#include "path/traffic_for_tests.hpp"
#include "path/udp_path.hpp"

namespace fairlead::path {
namespace {

class UdpHotPeer : public testing::TestWithParam<const char*> {
 protected:
  UdpHotPeer() {
    EXPECT_TRUE(host_->facts().has_hot_sockets);
    for (auto& peer : peers_) peer = open_path(peer_ip());
    to_host_ = host_->address();
    if (is_any()) to_host_.ip = peers_[0]->address().ip;
  }

  bool is_any() const { return std::string_view(GetParam()) == "::"; }
  const char* peer_ip() const { return is_any() ? "127.0.0.1" : GetParam(); }

  void send_from(std::size_t peer, std::uint32_t tag) {
    auto bytes = pattern(100 + tag, tag);
    ASSERT_TRUE(send_bytes(*peers_[peer], to_host_, bytes, 1472));
  }

  /// Returns the tags that arrive; checks each against its sender.
  std::vector<std::uint32_t> arrived(std::size_t count) {
    std::vector<std::uint32_t> tags;
    for (const Datagram& datagram : collect_datagrams(*host_, count)) {
      const auto tag = static_cast<std::uint32_t>(datagram.bytes.size() - 100);
      EXPECT_EQ(datagram.bytes, pattern(datagram.bytes.size(), tag));
      EXPECT_EQ(datagram.from, peers_[tag % peers_.size()]->address());
      tags.push_back(tag);
    }
    std::sort(tags.begin(), tags.end());
    return tags;
  }

  std::unique_ptr<UdpPath> host_ = open_path(GetParam());
  std::array<std::unique_ptr<UdpPath>, 3> peers_;
  base::SocketAddress to_host_;
};

using Tags = std::vector<std::uint32_t>;

INSTANTIATE_TEST_SUITE_P(BothFamilies, UdpHotPeer, testing::Values("127.0.0.1", "::1", "::"));

TEST_P(UdpHotPeer, LosesNothingWhenPeersBecomeHotAndCold) {
  std::uint32_t tag = 0;
  for (int round = 0; round < 50; ++round) {
    const std::uint32_t first = tag;
    const auto one_from_each = [&] {
      for (std::size_t peer = 0; peer < peers_.size(); ++peer) send_from(peer, tag++);
    };
    one_from_each();
    host_->set_hot(peers_[0]->address(), true);
    one_from_each();
    host_->set_hot(peers_[1]->address(), true);
    one_from_each();
    host_->set_hot(peers_[0]->address(), false);
    one_from_each();
    const Tags found = arrived(tag - first);
    ASSERT_EQ(found.size(), tag - first);
    for (std::size_t index = 0; index < found.size(); ++index) ASSERT_EQ(found[index], first + index);
    host_->set_hot(peers_[1]->address(), false);
    tag %= 300;
  }
}

TEST_P(UdpHotPeer, AnswersFromTheSamePort) {
  host_->set_hot(peers_[0]->address(), true);
  for (const auto& peer : peers_) {
    auto bytes = pattern(5000, 1);
    ASSERT_TRUE(send_bytes(*host_, peer->address(), bytes, 1000));
    const auto found = collect_datagrams(*peer, 5);
    ASSERT_EQ(found.size(), 5u);
    EXPECT_EQ(found[0].from, to_host_);
  }
}

TEST_P(UdpHotPeer, IsHotOnceHoweverOftenSaid) {
  for (int time = 0; time < 10; ++time) host_->set_hot(peers_[0]->address(), true);
  for (std::size_t peer = 1; peer < peers_.size(); ++peer) host_->set_hot(peers_[peer]->address(), true);
  for (std::uint32_t tag = 0; tag < 3; ++tag) send_from(tag, tag);
  EXPECT_EQ(arrived(3), (Tags{0, 1, 2}));
}

TEST_P(UdpHotPeer, TakesNoMoreThanItsBound) {
  for (std::uint16_t port = 1; port < 100; ++port) {
    auto peer = peers_[0]->address();
    peer.port = port;
    host_->set_hot(peer, true);
  }
  for (std::uint32_t tag = 0; tag < 3; ++tag) send_from(tag, tag);
  EXPECT_EQ(arrived(3), (Tags{0, 1, 2}));
}

TEST_P(UdpHotPeer, GivesEveryoneATurnWhileOneFloods) {
  host_->set_hot(peers_[0]->address(), true);
  host_->set_hot(peers_[1]->address(), true);
  auto train = pattern(40 * 1472, 1);
  const std::array<iovec, 1> piece{{{train.data(), train.size()}}};
  const Train flood{to_host_, piece, 1472};
  for (int time = 0; time < 20; ++time) peers_[0]->send(std::span(&flood, 1), {});
  send_from(1, 1);
  send_from(2, 2);
  std::array<Arrival, 4> arrivals;
  std::size_t small = 0;
  for (int look = 0; look < 12; ++look) {
    const std::size_t taken = host_->collect(arrivals, {});
    for (const Arrival& arrival : std::span(arrivals).first(taken)) small += arrival.bytes.size() < 200 ? 1 : 0;
    if (taken > 0) peers_[0]->send(std::span(&flood, 1), {});
  }
  EXPECT_EQ(small, 2u);
}

TEST_P(UdpHotPeer, ReportsThatItIsGone) {
  const auto gone = peers_[0]->address();
  host_->set_hot(gone, true);
  peers_[0].reset();
  auto bytes = pattern(8, 1);
  EXPECT_TRUE(send_bytes(*host_, gone, bytes, 1472));
  std::array<Arrival, 4> none;
  EXPECT_EQ(host_->collect(none, {}), 0u);
  std::array<Unreachable, 4> errors;
  ASSERT_EQ(host_->unreachable(errors), 1u);
  EXPECT_EQ(errors[0].to, gone);
  EXPECT_EQ(errors[0].system_errno, ECONNREFUSED);
}

TEST_P(UdpHotPeer, WakesTheSleeper) {
  host_->set_hot(peers_[0]->address(), true);
  for (std::uint32_t tag = 0; tag < 3; ++tag) {
    pollfd waiting{host_->descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 0), 0);
    send_from(tag, tag);
    EXPECT_EQ(::poll(&waiting, 1, 1000), 1);
    EXPECT_EQ(arrived(1), (Tags{tag}));
  }
}

// Outside the epoll set all sockets are still polled; back in it, the set reports what arrived meanwhile.
TEST_P(UdpHotPeer, IsServedWhileNobodyWatches) {
  host_->set_hot(peers_[0]->address(), true);
  ASSERT_FALSE(host_->set_watched(false));
  for (std::uint32_t tag = 0; tag < 3; ++tag) send_from(tag, tag);
  std::vector<Datagram> found;
  std::array<Arrival, 4> arrivals;
  for (int look = 0; look < 1'000'000 && found.size() < 3; ++look) {
    const std::size_t taken = host_->collect(arrivals, {});
    for (const Arrival& arrival : std::span(arrivals).first(taken)) cut(arrival, found);
  }
  EXPECT_EQ(found.size(), 3u);
  send_from(0, 3);
  pollfd waiting{host_->descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 0), 0);
  ASSERT_TRUE(host_->set_watched(true));
  EXPECT_EQ(::poll(&waiting, 1, 1000), 1);
  EXPECT_EQ(arrived(1), (Tags{3}));
}

TEST_P(UdpHotPeer, IsWatchedFromTheSecondHotPeerOn) {
  ASSERT_FALSE(host_->set_watched(false));
  for (const auto& peer : peers_) host_->set_hot(peer->address(), true);
  EXPECT_EQ(host_->facts().hot_sockets, peers_.size());
  EXPECT_TRUE(host_->set_watched(false)) << "a look at each socket would cost more";
  for (std::uint32_t tag = 0; tag < 3; ++tag) {
    pollfd waiting{host_->descriptor(), POLLIN, 0};
    send_from(tag, tag);
    EXPECT_EQ(::poll(&waiting, 1, 1000), 1);
    EXPECT_EQ(arrived(1), (Tags{tag}));
  }
}

}  // namespace
}  // namespace fairlead::path
