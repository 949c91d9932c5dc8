#include "net/end_point_table.hpp"

#include <gtest/gtest.h>

#include <array>
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

class LentSenders : public ::testing::Test {
 protected:
  /// Lends the end points of the processes `first`, `first` + 1, ..., each twice, and of nobody in between.
  std::vector<EndPointState*> lend(std::uint16_t first, std::size_t count) {
    std::vector<engine::RemotePort> remotes;
    std::vector<const engine::RemotePort*> sources;
    for (std::size_t i = 0; i < count; ++i) remotes.push_back(remote(static_cast<std::uint16_t>(first + i)));
    for (const engine::RemotePort& one : remotes) sources.insert(sources.end(), {&one, &one, nullptr});
    std::vector<EndPointState*> lent(sources.size()), senders;
    table_.lend_senders(sources, lent);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(lent[3 * i], lent[3 * i + 1]);
      EXPECT_EQ(lent[3 * i + 2], nullptr);
      senders.push_back(lent[3 * i]);
    }
    return senders;
  }
  EndPointTable table_{1};
};

// In a small table and in one with so many that they are prefetched.
TEST_F(LentSenders, AreThoseThatAreKnownOrNew) {
  std::vector<EndPoint> kept;
  for (const std::uint16_t known : {std::uint16_t{30}, std::uint16_t{5000}}) {
    while (kept.size() < known)
      kept.push_back(table_.find_or_make(remote(static_cast<std::uint16_t>(kept.size() + 1))));
    const auto first = static_cast<std::uint16_t>(known - 19);
    const auto senders = lend(first, 40);
    for (std::size_t i = 0; i < 40; ++i) {
      ASSERT_NE(senders[i], nullptr);
      EXPECT_EQ(senders[i]->remote, remote(static_cast<std::uint16_t>(first + i)));
      if (i < 20) {
        EXPECT_EQ(senders[i], EndPointState::of(kept[first + i - 1]));
      }
    }
    table_.release_senders();
    // The next batch goes on with the sender that ended this one.
    const auto last = static_cast<std::uint16_t>(first + 39);
    EXPECT_EQ(lend(last, 2)[0], senders[39]);
    table_.release_senders();
  }
}

TEST_F(LentSenders, ANewSenderIsMadeOnceThoughItsMessagesAreNoRun) {
  const engine::RemotePort one = remote(1), other = remote(2);
  const std::array<const engine::RemotePort*, 4> sources{&one, &other, &one, &other};
  std::array<EndPointState*, 4> senders{};
  table_.lend_senders(sources, senders);
  EXPECT_NE(senders[0], senders[1]);
  EXPECT_EQ(senders[2], senders[0]);
  EXPECT_EQ(senders[3], senders[1]);
  EXPECT_EQ(table_.size(), 2U);
  table_.release_senders();
}

// While senders are lent, strangers do not displace them. A copy stays for longer.
TEST_F(LentSenders, StayUntilTheyAreReleased) {
  const auto senders = lend(1, 2);
  EndPoint copy;
  {
    const LentEndPoint first(senders[0]), second(senders[1]), nobody(nullptr);
    copy = second.get();
    EXPECT_EQ(first.get().address(), "10.0.0.5@udp:1:34:1");
    EXPECT_FALSE(nobody.get());
  }
  EXPECT_EQ(senders[0]->references, 1U);
  EXPECT_EQ(senders[1]->references, 2U);
  const Destination released = LentEndPoint(senders[0]).get();
  for (std::uint16_t i = 10; i < 10 + 2 * EndPointTable::kSweepLeast; ++i) table_.find_or_make(remote(i));
  EXPECT_GT(table_.size(), 2 * EndPointTable::kSweepLeast);
  EXPECT_EQ(table_.find(released), senders[0]);
  table_.release_senders();
  table_.find_or_make(remote(5));
  EXPECT_EQ(table_.size(), 2U);
  EXPECT_EQ(table_.find(released), nullptr);
  EXPECT_EQ(copy.address(), "10.0.0.5@udp:2:34:1");
}

// Strangers that come in batches do not make the table grow either.
TEST_F(LentSenders, AreSweptBetweenBatches) {
  for (std::uint32_t first = 1; first < 60'000; first += 40) {
    lend(static_cast<std::uint16_t>(first), 40);
    table_.release_senders();
    ASSERT_LE(table_.size(), EndPointTable::kSweepLeast + 40);
  }
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
