#include "net/end_point_index.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "net/end_point_table.hpp"

namespace fairlead::net {
namespace {

class EndPointsByAddress : public ::testing::Test {
 protected:
  static engine::RemotePort remote(std::uint32_t number) {
    const auto engine = base::SocketAddress::from_ip("10.0.0.5", static_cast<std::uint16_t>(number >> 8)).value();
    return {engine, 34U << 12 | (number & 0xff)};
  }
  EndPointState* find(std::uint32_t number) const { return index_.find(remote(number), index_.hash(remote(number))); }
  void insert(std::uint32_t number, std::uint64_t hash) {
    index_.reserve_one();
    states_.push_back(std::make_unique<EndPointState>());
    states_.back()->remote = remote(number);
    states_.back()->place = number;
    index_.insert(states_.back().get(), hash);
  }
  void insert(std::uint32_t number) { insert(number, index_.hash(remote(number))); }

  EndPointIndex index_{1};
  std::vector<std::unique_ptr<EndPointState>> states_;
};

TEST_F(EndPointsByAddress, AreFoundWhileTheIndexGrows) {
  constexpr std::uint32_t kCount = 5000;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(find(i), nullptr);
    insert(i);
    ASSERT_EQ(find(i), states_[i].get());
    ASSERT_EQ(find(i / 2), states_[i / 2].get());
  }
  EXPECT_EQ(index_.size(), kCount);
}

// All entries of one hash form a run of slots. Removing one must not hide those after it.
TEST_F(EndPointsByAddress, OfOneHashAreFoundWhenOthersGo) {
  constexpr std::uint64_t kHash = ~0ULL;  // its home is the last slot, so the run wraps to the first one
  constexpr std::uint32_t kCount = 7;
  for (std::uint32_t i = 0; i < kCount; ++i) insert(i, kHash);
  index_.erase_if([](const EndPointState& state) { return state.place % 3 == 0; });
  EXPECT_EQ(index_.size(), 4U);
  for (std::uint32_t i = 0; i < kCount; ++i)
    EXPECT_EQ(index_.find(remote(i), kHash), i % 3 == 0 ? nullptr : states_[i].get()) << i;
  EXPECT_EQ(index_.find(remote(kCount), kHash), nullptr);
}

TEST_F(EndPointsByAddress, AreGuessedByTheirHash) {
  insert(1);
  insert(2, index_.hash(remote(1)));
  for (const std::uint32_t number : {1U, 3U}) {
    const std::uint64_t hash = index_.hash(remote(number));
    index_.prefetch_slot(hash);
    EXPECT_EQ(index_.prefetch_first(hash), number == 1 ? states_[0].get() : nullptr);
  }
  EXPECT_EQ(index_.find(remote(2), index_.hash(remote(1))), states_[1].get());
}

}  // namespace
}  // namespace fairlead::net
