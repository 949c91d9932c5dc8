#include "transport/retry_queue.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace fairlead::transport {
namespace {

using namespace std::chrono_literals;
using Retries = RetryQueue<std::uint64_t>;

constexpr link::PeerHandle kOne{1, 1}, kTwo{2, 1}, kThree{3, 1};

struct Taken {
  std::vector<std::uint64_t> of(link::PeerHandle peer) const {
    const auto found = items.find(peer.slot);
    return found == items.end() ? std::vector<std::uint64_t>{} : found->second;
  }
  std::map<std::uint32_t, std::vector<std::uint64_t>> items;
  std::size_t tries = 0;
};

/// Retries; only `takers` accept items.
Taken retry(Retries& retries, std::vector<link::PeerHandle> takers, std::size_t tries = 1000,
            base::Instant now = base::Instant(1s)) {
  Taken taken;
  retries.retry(tries, now, [&](link::PeerHandle peer, std::uint64_t item) {
    ++taken.tries;
    if (std::ranges::find(takers, peer) == takers.end()) return false;
    taken.items[peer.slot].push_back(item);
    return true;
  });
  return taken;
}

TEST(RetryQueue, KeepsTheOrderOfEachPeer) {
  Retries retries;
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_FALSE(retries.add(kOne, i, {}).excess);
    EXPECT_FALSE(retries.add(kTwo, 100 + i, {}).excess);
  }
  EXPECT_EQ(retries.size(), 20u);
  EXPECT_TRUE(retries.has(kOne));
  EXPECT_FALSE(retries.has(kThree));
  EXPECT_FALSE(retries.has({1, 2})) << "another life of the slot";
  const Taken taken = retry(retries, {kOne, kTwo});
  EXPECT_EQ(taken.of(kOne), (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(taken.of(kTwo).size(), 10u);
  EXPECT_TRUE(retries.is_empty());
  EXPECT_FALSE(retries.has(kOne));
}

TEST(RetryQueue, APeerThatTakesNothingHoldsUpNobody) {
  Retries retries;
  for (std::uint64_t i = 0; i < 1000; ++i) (void)retries.add(kOne, i, {});
  (void)retries.add(kTwo, 7, {});
  const Taken taken = retry(retries, {kTwo}, 8);
  EXPECT_EQ(taken.of(kTwo), std::vector<std::uint64_t>{7});
  EXPECT_LE(taken.tries, 3u);
  EXPECT_EQ(retries.size(), 1000u);
}

TEST(RetryQueue, AllHaveTheirTurnsThoughTriesAreFew) {
  Retries retries;
  for (std::uint32_t slot = 0; slot < 100; ++slot) (void)retries.add({slot, 1}, slot, {});
  std::size_t done = 0;
  for (int pass = 0; pass < 20; ++pass) {
    retries.retry(10, {}, [&](link::PeerHandle peer, std::uint64_t) { return peer.slot % 2 == 0 && ++done != 0; });
  }
  EXPECT_EQ(done, 50u);
  EXPECT_EQ(retries.size(), 50u);
}

TEST(RetryQueue, NamesThePeerWhoseLineIsTooLong) {
  Retries retries;
  for (std::uint64_t i = 0; i < Retries::kOfPeerMax; ++i) ASSERT_FALSE(retries.add(kOne, i, {}).excess);
  EXPECT_FALSE(retries.add(kTwo, 1, {}).excess);
  EXPECT_EQ(retries.add(kOne, 1, {}).excess, kOne);
  std::size_t ended = 0;
  retries.drop(kOne, [&](std::uint64_t) { ++ended; });
  EXPECT_EQ(ended, Retries::kOfPeerMax + 1);
  EXPECT_EQ(retry(retries, {kOne, kTwo}).of(kTwo), std::vector<std::uint64_t>{1});
  EXPECT_TRUE(retries.is_empty());
}

// An honest peer that accepts much is not the excess one, even if its line is the longest.
TEST(RetryQueue, NamesThePeerThatHasMovedLongestAgoWhenAllTogetherAreTooMany) {
  Retries retries;
  constexpr std::uint32_t kMany = 8;
  constexpr std::size_t kEach = Retries::kMax / kMany - 1000;
  for (std::size_t i = 0; i < kEach + 5000; ++i) (void)retries.add(kOne, i, base::Instant(1s));
  for (std::uint32_t slot = 10; slot < 10 + kMany - 1; ++slot) {
    for (std::size_t i = 0; i < kEach; ++i)
      ASSERT_FALSE(retries.add({slot, 1}, i, base::Instant(2s + slot * 1ms)).excess);
  }
  ASSERT_GE(retry(retries, {kOne}, 100, base::Instant(3s)).of(kOne).size(), 50u);
  std::optional<link::PeerHandle> named;
  while (!named) named = retries.add(kTwo, 0, base::Instant(3s)).excess;
  EXPECT_EQ(*named, (link::PeerHandle{10, 1}));
  retries.drop(*named, [](std::uint64_t) {});
  EXPECT_FALSE(retries.add(kTwo, 0, base::Instant(3s)).excess);
}

TEST(RetryQueue, AnAttemptMayAddOthers) {
  Retries retries;
  (void)retries.add(kOne, 1, {});
  std::vector<std::uint64_t> seen;
  retries.retry(10, {}, [&](link::PeerHandle peer, std::uint64_t item) {
    seen.push_back(item);
    if (item < 3) (void)retries.add(peer, item + 1, {});
    return true;
  });
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_TRUE(retries.is_empty());
}

}  // namespace
}  // namespace fairlead::transport
