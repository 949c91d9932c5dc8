#include "net/end_point_table.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace fairlead::net {
namespace {

engine::RemotePort remote(std::uint16_t pid, std::uint32_t port = 34U << 12 | 1) {
  return {base::SocketAddress::from_ip("10.0.0.5", pid).value(), port};
}

TEST(EndPointTable, OneObjectPerAddress) {
  EndPointTable table(1);
  const EndPoint a = table.find_or_make(remote(1));
  const EndPoint b = table.find_or_make(remote(2));
  const EndPoint again = table.find_or_make(remote(1));
  EXPECT_EQ(a, again);
  EXPECT_NE(a, b);
  EXPECT_NE(a, table.find_or_make(remote(1, 34U << 12 | 2)));
  EXPECT_EQ(a.address(), "10.0.0.5@udp:1:34:1");
  EXPECT_EQ(a.address().data(), again.address().data());
}

TEST(EndPointTable, KnowsItsOwn) {
  EndPointTable table(1), other(1);
  const EndPoint own = table.find_or_make(remote(1));
  EXPECT_EQ(table.find(own), EndPointState::of(own));
  EXPECT_EQ(table.find(other.find_or_make(remote(1))), nullptr);
  EXPECT_EQ(table.find(EndPoint()), nullptr);
  EXPECT_EQ(table.find(Destination()), nullptr);
}

// A destination holds no reference. After its end point is swept, it names no other end point that reuses the index.
TEST(EndPointTable, DestinationsOfWhatIsGoneNameNothing) {
  EndPointTable table(1);
  const Destination kept = table.find_or_make(remote(1));
  ASSERT_NE(table.find(kept), nullptr) << "still kept for the next message of its sender";
  std::vector<EndPoint> others;
  for (std::uint16_t i = 2; others.size() < 2 * EndPointTable::kSweepLeast; ++i) {
    others.push_back(table.find_or_make(remote(i)));
    ASSERT_EQ(table.find(others.back()), EndPointState::of(others.back()));
  }
  EXPECT_EQ(table.find(kept), nullptr);
  const EndPoint again = table.find_or_make(remote(1));
  EXPECT_EQ(table.find(kept), nullptr);
  EXPECT_EQ(table.find(again), EndPointState::of(again));
}

TEST(EndPointTable, CountsWhoRefers) {
  EndPointTable table(1);
  const EndPoint own = table.find_or_make(remote(1));
  EXPECT_FALSE(table.is_referred(own));
  EndPoint peer = table.find_or_make(remote(2));
  EXPECT_TRUE(table.is_referred(own));
  peer = EndPoint();
  EXPECT_FALSE(table.is_referred(own));
  const EndPoint copy = own;
  EXPECT_TRUE(table.is_referred(own));
}

TEST(EndPointTable, ReferencesOutliveIt) {
  auto table = std::make_unique<EndPointTable>(1);
  const EndPoint kept = table->find_or_make(remote(9));
  table.reset();
  EXPECT_EQ(kept.address(), "10.0.0.5@udp:9:34:1");
}

// A stranger that invents senders cannot make the table grow: unreferenced end points are swept.
TEST(EndPointTable, ForgetsStrangers) {
  EndPointTable table(1);
  std::vector<EndPoint> kept;
  for (std::uint32_t i = 1; i <= 60000; ++i) {
    const EndPoint end_point = table.find_or_make(remote(static_cast<std::uint16_t>(i)));
    if (i % 1000 == 0) kept.push_back(end_point);
    ASSERT_LE(table.size(), EndPointTable::kSweepLeast);
  }
  for (const EndPoint& end_point : kept) {
    const auto state = EndPointState::of(end_point);
    EXPECT_EQ(table.find_or_make(state->remote), end_point);
  }
}

// Any number of senders, known or not.
TEST(EndPointTable, PrefetchesWithoutMakingAny) {
  EndPointTable table(1);
  std::vector<EndPoint> kept;
  for (std::uint16_t i = 1; i <= 5000; ++i) kept.push_back(table.find_or_make(remote(i)));
  std::vector<engine::Completion> messages(300);
  for (std::uint16_t i = 0; i < messages.size(); ++i) messages[i].source = remote(4900 + i);
  table.prefetch_senders(messages);
  EXPECT_EQ(table.size(), kept.size());
  for (std::size_t i = 4900; i <= kept.size(); ++i)
    EXPECT_EQ(table.find_or_make(remote(static_cast<std::uint16_t>(i))), kept[i - 1]);
}

TEST(EndPointTable, CopiesNeedNoLock) {
  EndPointTable table(1);
  const EndPoint own = table.find_or_make(remote(1));
  {
    const EndPoint peer = table.find_or_make(remote(2));
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([peer] {
        for (int round = 0; round < 10000; ++round) const EndPoint copy = peer;
      });
    }
  }
  EXPECT_FALSE(table.is_referred(own));
}

}  // namespace
}  // namespace fairlead::net
