#include "path/udp_path.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <tuple>

#include "path/traffic_for_tests.hpp"

namespace fairlead::path {
namespace {

// The address family, and which of GSO and GRO are used.
class UdpPathOf : public testing::TestWithParam<std::tuple<const char*, bool, bool>> {
 protected:
  UdpPathOf() {
    UdpOptions options;
    options.wants_gso = std::get<1>(GetParam());
    options.wants_gro = std::get<2>(GetParam());
    left_ = open_path(ip(), options);
    right_ = open_path(ip(), options);
  }

  const char* ip() const { return std::get<0>(GetParam()); }

  std::unique_ptr<UdpPath> left_, right_;
};

INSTANTIATE_TEST_SUITE_P(BothFamilies, UdpPathOf,
                         testing::Combine(testing::Values("127.0.0.1", "::1"), testing::Bool(), testing::Bool()));

TEST_P(UdpPathOf, CarriesOneDatagram) {
  auto sent = pattern(8, 1);
  ASSERT_TRUE(send_bytes(*left_, right_->address(), sent, 1472));
  const auto found = collect_datagrams(*right_, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].from, left_->address());
  EXPECT_EQ(found[0].bytes, sent);
}

TEST_P(UdpPathOf, CutsTrainsWhateverThePieces) {
  auto sent = pattern(20 * 1000 + 300, 2);
  std::vector<iovec> pieces;
  for (std::size_t at = 0, length = 1; at < sent.size(); at += length, length = length * 2 + 3)
    pieces.push_back({sent.data() + at, std::min(length, sent.size() - at)});
  const Train train{right_->address(), pieces, 1000};
  ASSERT_EQ(left_->send(std::span(&train, 1), {}), 1u);
  EXPECT_EQ(left_->counters().datagrams_sent, 21u);
  EXPECT_EQ(left_->counters().bytes_sent, sent.size());

  const auto found = collect_datagrams(*right_, 21);
  ASSERT_EQ(found.size(), 21u);
  Bytes joined;
  for (std::size_t index = 0; index < found.size(); ++index) {
    EXPECT_EQ(found[index].bytes.size(), index < 20 ? 1000u : 300u);
    joined.insert(joined.end(), found[index].bytes.begin(), found[index].bytes.end());
  }
  EXPECT_EQ(joined, sent);
  EXPECT_EQ(right_->counters().datagrams_received, 21u);
}

TEST_P(UdpPathOf, GathersTheSmallAndTheLargeSingleDatagram) {
  for (const std::size_t length : {100u, 30'000u}) {
    auto sent = pattern(length, 3);
    const std::array<iovec, 3> pieces{{{sent.data(), 7}, {sent.data() + 7, 0}, {sent.data() + 7, length - 7}}};
    const Train train{right_->address(), pieces, 60'000};
    ASSERT_EQ(left_->send(std::span(&train, 1), {}), 1u);
    const auto found = collect_datagrams(*right_, 1);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].bytes, sent);
  }
}

// Both modes of receiving, and both changes between them.
TEST_P(UdpPathOf, KeepsCutsWhenTheTrafficChangesItsKind) {
  std::uint32_t tag = 0;
  for (int round = 0; round < 3; ++round) {
    for (int burst = 0; burst < 4; ++burst) {
      auto sent = pattern(40 * 1472, ++tag);
      ASSERT_TRUE(send_bytes(*left_, right_->address(), sent, 1472));
      const auto found = collect_datagrams(*right_, 40);
      ASSERT_EQ(found.size(), 40u);
      for (std::size_t index = 0; index < 40; ++index)
        ASSERT_TRUE(std::equal(found[index].bytes.begin(), found[index].bytes.end(), sent.begin() + index * 1472));
    }
    for (int lone = 0; lone < 600; ++lone) {
      auto sent = pattern(64, ++tag);
      ASSERT_TRUE(send_bytes(*left_, right_->address(), sent, 1472));
      const auto found = collect_datagrams(*right_, 1);
      ASSERT_EQ(found.size(), 1u);
      ASSERT_EQ(found[0].bytes, sent);
      std::array<Arrival, 4> none;
      ASSERT_EQ(right_->collect(none, {}), 0u);
    }
  }
}

TEST_P(UdpPathOf, CarriesTheLargestDatagramOfTheLoopback) {
  const std::uint32_t size = left_->datagram_size_max(right_->address());
  EXPECT_EQ(size, right_->address().is_v4() ? 65'507u : 65'488u);
  auto sent = pattern(std::min(size, left_->train_bytes_max()), 4);
  ASSERT_TRUE(send_bytes(*left_, right_->address(), sent, size));
  const auto found = collect_datagrams(*right_, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].bytes, sent);
}

TEST_P(UdpPathOf, CarriesTheLargestTrain) {
  auto sent = pattern(left_->train_bytes_max(), 5);
  ASSERT_TRUE(send_bytes(*left_, right_->address(), sent, 1472));
  EXPECT_EQ(collect_datagrams(*right_, 45).size(), 45u);
  auto small = pattern(64 * 5, 6);
  ASSERT_EQ(left_->train_datagrams_max(), 64u);
  ASSERT_TRUE(send_bytes(*left_, right_->address(), small, 5));
  EXPECT_EQ(collect_datagrams(*right_, 64).size(), 64u);
}

TEST_P(UdpPathOf, CountsTheDatagramThatIsTooBig) {
  auto sent = pattern(65'530, 7);
  EXPECT_TRUE(send_bytes(*left_, right_->address(), sent, 65'530));
  EXPECT_EQ(left_->counters().send_too_big, 1u);
  EXPECT_EQ(left_->counters().datagrams_sent, 0u);
  sent.resize(8);
  EXPECT_TRUE(send_bytes(*left_, right_->address(), sent, 1472));
  EXPECT_EQ(collect_datagrams(*right_, 1).size(), 1u);
}

TEST_P(UdpPathOf, KeepsAllArrivalsOfOneCollectValid) {
  constexpr std::uint32_t kCount = 24;
  for (std::uint32_t tag = 0; tag < kCount; ++tag) {
    auto sent = pattern(500 + tag, tag);
    ASSERT_TRUE(send_bytes(*left_, right_->address(), sent, 1472));
  }
  std::array<Arrival, kCount> arrivals;
  std::uint32_t tag = 0;
  for (int look = 0; look < 1000 && tag < kCount; ++look) {
    const std::size_t taken = right_->collect(arrivals, {});
    for (const Arrival& arrival : std::span(arrivals).first(taken)) {
      const auto expected = pattern(500 + tag, tag);
      EXPECT_TRUE(std::equal(arrival.bytes.begin(), arrival.bytes.end(), expected.begin(), expected.end()));
      tag += 1;
    }
  }
  EXPECT_EQ(tag, kCount);
}

TEST_P(UdpPathOf, ReportsTheClosedPort) {
  const auto gone = right_->address();
  right_.reset();
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto sent = pattern(8, 8);
    EXPECT_TRUE(send_bytes(*left_, gone, sent, 1472));
  }
  std::array<Arrival, 4> none;
  EXPECT_EQ(left_->collect(none, {}), 0u);
  std::array<Unreachable, 4> errors;
  ASSERT_EQ(left_->unreachable(errors), 1u);
  EXPECT_EQ(errors[0].to, gone);
  EXPECT_EQ(errors[0].system_errno, ECONNREFUSED);
  EXPECT_EQ(left_->unreachable(errors), 0u);
}

// A socket reports an error about one peer at the next call for another one, whose datagram must not be lost by that.
TEST_P(UdpPathOf, LosesNothingToAnotherPeersError) {
  const auto gone = open_path(ip())->address();
  for (std::uint32_t tag = 0; tag < 20; ++tag) {
    auto refused = pattern(8, tag);
    auto wanted = pattern(5000, tag);
    ASSERT_TRUE(send_bytes(*left_, gone, refused, 1472));
    ASSERT_TRUE(send_bytes(*left_, right_->address(), wanted, 1000));
    ASSERT_EQ(collect_datagrams(*right_, 5).size(), 5u);
  }
  EXPECT_EQ(left_->counters().send_failed, 0u);
}

TEST(UdpPath, ReachesBothFamiliesFromTheWildcard) {
  const auto any = open_path("::");
  for (const char* ip : {"127.0.0.1", "::1"}) {
    const auto peer = open_path(ip);
    auto sent = pattern(3000, 1);
    const auto to = *base::SocketAddress::from_ip(ip, any->address().port);
    ASSERT_TRUE(send_bytes(*peer, to, sent, 1000));
    const auto found = collect_datagrams(*any, 3);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0].from, peer->address());
    ASSERT_TRUE(send_bytes(*any, found[0].from, sent, 1000));
    EXPECT_EQ(collect_datagrams(*peer, 3).size(), 3u);
    EXPECT_EQ(any->datagram_size_max(peer->address()), peer->address().is_v4() ? 65'507u : 65'488u);
  }
}

TEST(UdpPath, SaysThatAPeerOfTheOtherFamilyIsUnreachable) {
  const auto path = open_path("127.0.0.1");
  const auto peer = *base::SocketAddress::from_ip("::1", 20480);
  auto sent = pattern(5000, 1);
  EXPECT_TRUE(send_bytes(*path, peer, sent, 1000));
  EXPECT_EQ(path->counters().send_failed, 1u);
  std::array<Unreachable, 1> errors;
  ASSERT_EQ(path->unreachable(errors), 1u);
  EXPECT_EQ(errors[0].to, peer);
}

TEST(UdpPath, CountsWhatIsLongerThanItsBuffers) {
  UdpOptions options;
  options.arrival_bytes_max = 1000;
  const auto left = open_path("127.0.0.1");
  const auto right = open_path("127.0.0.1", options);
  for (const std::size_t length : {1001u, 30'000u, 1000u}) {
    auto sent = pattern(length, 1);
    ASSERT_TRUE(send_bytes(*left, right->address(), sent, 60'000));
  }
  const auto found = collect_datagrams(*right, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].bytes, pattern(1000, 1));
  EXPECT_EQ(right->counters().received_truncated, 2u);
}

TEST(UdpPath, SurvivesEmptyDatagrams) {
  const auto path = open_path("127.0.0.1");
  const base::FileDescriptor stranger(::socket(AF_INET, SOCK_DGRAM, 0));
  sockaddr_storage to{};
  const unsigned length = path->address().to_kernel(reinterpret_cast<sockaddr*>(&to), AF_INET);
  ::sendto(stranger.get(), "", 0, 0, reinterpret_cast<sockaddr*>(&to), length);
  ::sendto(stranger.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&to), length);
  const auto found = collect_datagrams(*path, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].bytes.size(), 1u);
}

// Each receive call costs more than its copy.
TEST(UdpPath, MergesTheDatagramsOfAMessageOf4096Bytes) {
  const auto left = open_path("127.0.0.1", {}), right = open_path("127.0.0.1", {});
  std::uint32_t arrivals_of_last = 0;
  for (std::uint32_t tag = 0; tag < 8; ++tag) {
    auto sent = pattern(4500, tag);  // four datagrams
    ASSERT_TRUE(send_bytes(*left, right->address(), sent, 1472));
    arrivals_of_last = 0;
    std::array<Arrival, 8> arrivals;
    std::size_t bytes = 0;
    for (int look = 0; look < 10'000 && bytes < sent.size(); ++look) {
      for (const Arrival& one : std::span(arrivals).first(right->collect(arrivals, {}))) {
        bytes += one.bytes.size();
        ++arrivals_of_last;
      }
    }
    ASSERT_EQ(bytes, sent.size());
  }
  const bool is_merging = left->facts().has_gso && right->facts().has_gro;
  EXPECT_EQ(arrivals_of_last, is_merging ? 1u : 4u);
}

TEST(UdpPath, TellsWhatTheKernelGranted) {
  const auto path = open_path("127.0.0.1");
  EXPECT_GE(path->facts().receive_buffer_granted, 64u << 10);
  EXPECT_GE(path->facts().send_buffer_granted, 64u << 10);
  EXPECT_EQ(path->receive_buffer_bytes(), path->facts().receive_buffer_granted);
}

TEST(UdpPath, RefusesOptionsOutOfRange) {
  const auto is_refused = [](auto change) {
    UdpOptions options;
    change(options);
    const auto path = UdpPath::open(options);
    return !path && path.error().status == Status::invalid && !path.error().message.empty();
  };
  EXPECT_TRUE(is_refused([](UdpOptions& options) { options.port_count = 0; }));
  EXPECT_TRUE(is_refused([](UdpOptions& options) { options.port_count = 2; }));
  EXPECT_TRUE(is_refused([](UdpOptions& options) { options.local.port = 65'535, options.port_count = 2; }));
  EXPECT_TRUE(is_refused([](UdpOptions& options) { options.receive_buffer_bytes = 1000; }));
  EXPECT_TRUE(is_refused([](UdpOptions& options) { options.hot_sockets_max = 17; }));
  EXPECT_TRUE(is_refused([](UdpOptions& options) { options.arrival_bytes_max = 0; }));
}

}  // namespace
}  // namespace fairlead::path
