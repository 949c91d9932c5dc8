#include "qp/region_table.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include <fairlead/verbs/memory_window.hpp>

namespace fairlead::qp {
namespace {

using verbs::Cause;

class Regions : public testing::Test {
 protected:
  std::array<std::byte, 64> memory_{};
  RegionTable table_{100};
  std::uint32_t key_ = table_.add(
      {.base = memory_.data(), .length = 32, .iova = 1000, .access = verbs::access::remote_write, .domain = 7});
};

TEST_F(Regions, PermitWhatLiesInThemWithTheRightsThatTheyHave) {
  EXPECT_EQ(table_.locate(key_ + 1, 7, 1000, 1, 0).cause(), Cause::key_unknown);
  EXPECT_EQ(table_.locate(key_, 8, 1000, 1, 0).cause(), Cause::key_unknown);
  EXPECT_EQ(table_.locate(key_, 7, 1000, 1, verbs::access::remote_read).cause(), Cause::no_right);
  for (const auto& [address, length] :
       {std::pair<std::uint64_t, std::uint64_t>{999, 1}, {1000, 33}, {1032, 1}, {1001, ~0ULL}}) {
    const Permit permit = table_.locate(key_, 7, address, length, verbs::access::remote_write);
    EXPECT_TRUE(permit.is_refused());
    EXPECT_EQ(permit.cause(), Cause::out_of_range);
  }
  const Permit permit = table_.locate(key_, 7, 1004, 28, verbs::access::remote_write);
  ASSERT_FALSE(permit.is_refused());
  EXPECT_EQ(permit.at(), memory_.data() + 4);
  EXPECT_EQ(permit.range().iov_len, 28u);
}

TEST_F(Regions, APermitIsGoodForItsRangeOnly) {
  const std::array<std::byte, 9> bytes{std::byte{1}};
  const Permit permit = table_.locate(key_, 7, 1000, 8, verbs::access::remote_write);
  EXPECT_TRUE(permit.write(std::span(bytes).first(8)));
  EXPECT_TRUE(permit.store_last(std::byte{5}));
  EXPECT_EQ(memory_[7], std::byte{5});
  EXPECT_DEATH((void)permit.write(bytes), "9 bytes for a permit for 8");
  EXPECT_DEATH((void)Permit().store_last(std::byte{5}), "1 bytes for a permit for 0");
}

// The key stays valid and peers continue to use it, so a change waits only for earlier holds.
TEST_F(Regions, KeepHoldsFromBeforeAChangeApart) {
  const auto hold_now = [&] {
    const std::uint32_t hold = table_.locate(key_, 7, 1000, 1, 0).slot();
    table_.hold(hold);
    return hold;
  };
  const RegionPlan other{.base = memory_.data() + 32, .length = 32, .iova = 1000, .access = 0, .domain = 7};
  const std::uint32_t before = hold_now();
  EXPECT_FALSE(table_.is_held_from_before(key_));
  ASSERT_EQ(table_.change(key_, other), Status::ok);
  const std::uint32_t after = hold_now();
  EXPECT_TRUE(table_.is_held_from_before(key_));
  EXPECT_TRUE(table_.is_hold_of(before, key_, true));
  EXPECT_FALSE(table_.is_hold_of(after, key_, true));
  EXPECT_TRUE(table_.is_hold_of(after, key_, false));
  EXPECT_EQ(table_.change(key_, other), Status::again) << "there are two kinds of holds already";
  table_.let_go(before);
  EXPECT_FALSE(table_.is_held_from_before(key_));
  EXPECT_TRUE(table_.is_held(key_));
  ASSERT_EQ(table_.change(key_, other), Status::ok);
  EXPECT_TRUE(table_.is_held_from_before(key_));
  ASSERT_TRUE(table_.remove(key_));
  EXPECT_EQ(table_.used(), 1U);
  table_.let_go(after);
  EXPECT_EQ(table_.used(), 0U);
  EXPECT_EQ(table_.change(key_, other), Status::stale);
}

// Each kind of holds keeps the slot, whichever goes first.
TEST_F(Regions, KeepTheirSlotUntilTheHoldsOfBothKindsAreGone) {
  for (const bool is_first_before : {true, false}) {
    const std::uint32_t key = table_.add({.base = memory_.data(), .length = 64, .iova = 1000, .domain = 7});
    const std::uint32_t used = table_.used();
    std::array<std::uint32_t, 2> holds{};
    for (std::uint32_t& hold : holds) {
      hold = table_.locate(key, 7, 1000, 1, 0).slot();
      table_.hold(hold);
      if (&hold != holds.data()) continue;
      ASSERT_EQ(table_.change(key, {.base = memory_.data(), .length = 32, .iova = 1000, .domain = 7}), Status::ok);
    }
    ASSERT_TRUE(table_.remove(key));
    table_.let_go(holds[is_first_before ? 0 : 1]);
    EXPECT_EQ(table_.used(), used);
    EXPECT_TRUE(table_.is_held(key));
    table_.let_go(holds[is_first_before ? 1 : 0]);
    EXPECT_EQ(table_.used(), used - 1);
  }
}

// Local peers name a region by its slot.
TEST_F(Regions, KeepTheirSlotWhileAWithdrawalIsOpen) {
  const std::uint32_t slot = key_ >> 8;
  for (int i = 0; i < 2; ++i) table_.begin_withdrawal(key_);
  EXPECT_TRUE(table_.is_known(key_));
  EXPECT_FALSE(table_.is_open(key_));
  table_.end_withdrawal(key_);
  EXPECT_FALSE(table_.is_open(key_)) << "one is open still";
  ASSERT_TRUE(table_.remove(key_));
  const auto is_given_again = [&] {
    bool is_again = false;
    for (std::uint32_t i = 0; i <= 2 * RegionTable::kRotation; ++i) {
      const std::uint32_t key = table_.add({.base = memory_.data(), .length = 1});
      is_again |= key >> 8 == slot;
      table_.remove(key);
    }
    return is_again;
  };
  EXPECT_FALSE(is_given_again());
  EXPECT_EQ(table_.used(), 1U);
  table_.check({});
  table_.end_withdrawal(key_);
  EXPECT_EQ(table_.used(), 0U);
  EXPECT_TRUE(is_given_again());
  EXPECT_DEATH(table_.end_withdrawal(key_), "ends twice");
}

// Another thread may unmap the memory at any moment, also between the permit and its use.
TEST(WholeAddressSpace, MayGoBeforeAPermitIsUsed) {
  namespace rights = verbs::access;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const there = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const bytes = static_cast<std::byte*>(there);
  RegionTable table{100};
  constexpr std::uint32_t kEveryRight =
      rights::local_write | rights::remote_write | rights::remote_read | rights::remote_atomic;
  const std::uint32_t key = table.add({.access = kEveryRight, .domain = 7, .is_everything = true});
  const std::array<std::byte, 64> some{std::byte{1}};
  for (const std::uint32_t access : {rights::local_write, rights::remote_write, rights::remote_atomic}) {
    const Permit permit = table.locate(key, 7, reinterpret_cast<std::uintptr_t>(there), 64, access);
    ASSERT_FALSE(permit.is_refused());
    EXPECT_TRUE(permit.write(some));
    EXPECT_EQ(bytes[0], std::byte{1});
    EXPECT_TRUE(permit.store_last(std::byte{5}));
    EXPECT_EQ(bytes[63], std::byte{5});
    EXPECT_EQ(static_cast<void*>(permit.word()), there);
    for (const int rest : {PROT_READ, PROT_NONE}) {
      ::mprotect(there, page, rest);
      EXPECT_FALSE(permit.write(some));
      EXPECT_FALSE(permit.store_last(std::byte{5}));
      EXPECT_EQ(permit.word(), nullptr);
    }
    ::mprotect(there, page, PROT_READ | PROT_WRITE);
    EXPECT_DEATH((void)permit.write(std::array<std::byte, 65>{}), "65 bytes for a permit for 64");
  }
  ::munmap(there, page);
}

class Windows : public testing::Test {
 protected:
  static constexpr std::uint32_t kDomain = 7, kPair = 40, kOther = 41;
  static constexpr std::uint32_t kWrite = verbs::access::remote_write, kRead = verbs::access::remote_read;

  std::uint32_t add_region(std::uint32_t access) {
    return table_.add({.base = memory_.data(), .length = 64, .iova = 1000, .access = access, .domain = kDomain});
  }
  Cause bind(std::uint32_t window, verbs::WindowBinding binding, std::uint32_t domain = kDomain) {
    binding.window = window;
    if (binding.key == 0) binding.key = window;
    if (binding.lkey == 0) binding.lkey = region_;
    return table_.bind(binding, domain, kPair);
  }
  Permit reach(std::uint32_t key, std::uint64_t address, std::uint32_t access = kWrite, std::uint32_t pair = kPair) {
    return table_.locate(key, kDomain, address, 1, access, pair);
  }

  std::array<std::byte, 64> memory_{};
  RegionTable table_{100};
  std::uint32_t region_ = add_region(verbs::access::local_write | verbs::access::mw_bind);
  std::uint32_t first_ = table_.add_window(verbs::WindowType::type_1, kDomain);
  std::uint32_t second_ = table_.add_window(verbs::WindowType::type_2, kDomain);
  verbs::WindowBinding plain_{.access = kWrite, .addr = 1016, .length = 8};
};

TEST_F(Windows, ShowAPartOfTheirRegionWithTheirOwnRights) {
  EXPECT_EQ(reach(second_, 1016).cause(), Cause::key_unknown) << "bound to nothing";
  ASSERT_EQ(bind(second_, plain_), Cause::none);
  EXPECT_EQ(reach(second_, 1016).at(), memory_.data() + 16);
  EXPECT_EQ(reach(second_, 1016).slot(), region_ >> 8) << "whoever reads later holds the region";
  EXPECT_EQ(reach(second_, 1015).cause(), Cause::out_of_range);
  EXPECT_EQ(reach(second_, 1024).cause(), Cause::out_of_range);
  EXPECT_EQ(reach(second_, 1016, kRead).cause(), Cause::no_right);
  EXPECT_EQ(reach(region_, 1016).cause(), Cause::no_right) << "the region itself has none";
  EXPECT_EQ(table_.locate(second_, kDomain + 1, 1016, 1, kWrite, kPair).cause(), Cause::key_unknown);
  EXPECT_EQ(reach(second_, 1016, 0, 0).cause(), Cause::key_unknown) << "no key for this end's own requests";
}

TEST_F(Windows, OfType2BelongToOneQueuePairAndOfType1ToTheDomain) {
  ASSERT_EQ(bind(first_, plain_), Cause::none);
  ASSERT_EQ(bind(second_, plain_), Cause::none);
  EXPECT_FALSE(reach(first_, 1016, kWrite, kOther).is_refused());
  EXPECT_EQ(reach(second_, 1016, kWrite, kOther).cause(), Cause::key_unknown);
  EXPECT_FALSE(table_.is_invalidable(first_, kDomain, kPair));
  EXPECT_FALSE(table_.is_invalidable(second_, kDomain, kOther));
  EXPECT_FALSE(table_.is_invalidable(region_, kDomain, kPair));
  table_.unbind_windows_of_pair(kOther);
  EXPECT_FALSE(reach(second_, 1016).is_refused());
  table_.unbind_windows_of_pair(kPair);
  EXPECT_TRUE(reach(second_, 1016).is_refused());
  EXPECT_FALSE(reach(first_, 1016).is_refused());
}

TEST_F(Windows, HaveANewKeyWithEachBinding) {
  const std::uint32_t next = verbs::next_key(first_);
  ASSERT_EQ(bind(first_, plain_), Cause::none);
  verbs::WindowBinding zero_based = plain_;
  zero_based.key = next;
  zero_based.access |= verbs::access::zero_based;
  ASSERT_EQ(bind(first_, zero_based), Cause::none) << "type 1 may be bound anew";
  EXPECT_EQ(reach(first_, 1016).cause(), Cause::key_unknown);
  EXPECT_EQ(reach(next, 7).at(), memory_.data() + 23);
  ASSERT_EQ(bind(first_, {.key = first_}), Cause::none) << "length 0";
  EXPECT_TRUE(reach(next, 7).is_refused());
  EXPECT_FALSE(table_.has_windows(region_));

  ASSERT_EQ(bind(second_, plain_), Cause::none);
  EXPECT_EQ(bind(second_, plain_), Cause::bad_request) << "type 2 has to be invalidated first";
  ASSERT_TRUE(table_.is_invalidable(second_, kDomain, kPair));
  table_.invalidate(second_);
  EXPECT_FALSE(table_.is_invalidable(second_, kDomain, kPair));
  EXPECT_TRUE(reach(second_, 1016).is_refused());
  EXPECT_EQ(bind(second_, {}), Cause::bad_request) << "length 0 is for type 1";
  plain_.key = second_ ^ 0x80;
  ASSERT_EQ(bind(second_, plain_), Cause::none);
  EXPECT_FALSE(reach(plain_.key, 1016).is_refused());
}

TEST_F(Windows, AreNotBoundToWhatTheirRegionDoesNotGive) {
  const auto with = [&](auto change) {
    verbs::WindowBinding binding = plain_;
    change(binding);
    return bind(second_, binding);
  };
  EXPECT_EQ(with([](auto& b) { b.addr = 999; }), Cause::out_of_range);
  EXPECT_EQ(with([](auto& b) { b.length = 49; }), Cause::out_of_range);
  EXPECT_EQ(with([](auto& b) { b.length = ~0ULL; }), Cause::out_of_range);
  EXPECT_EQ(with([&](auto& b) { b.lkey = region_ + 1; }), Cause::key_unknown);
  EXPECT_EQ(with([&](auto& b) { b.lkey = first_; }), Cause::key_unknown) << "a window is no region";
  EXPECT_EQ(with([&](auto& b) { b.key = first_; }), Cause::key_unknown) << "another window's";
  EXPECT_EQ(with([](auto& b) { b.access = 1U << 9; }), Cause::no_right);
  EXPECT_EQ(bind(region_, plain_), Cause::key_unknown);
  EXPECT_EQ(bind(second_, plain_, kDomain + 1), Cause::key_unknown);
  const std::uint32_t closed = add_region(verbs::access::local_write), fixed = add_region(verbs::access::mw_bind);
  EXPECT_EQ(with([&](auto& b) { b.lkey = closed; }), Cause::no_right);
  EXPECT_EQ(with([&](auto& b) { b.lkey = fixed; }), Cause::no_right) << "it cannot be written at all";
  EXPECT_EQ(with([&](auto& b) { b.lkey = fixed, b.access = kRead; }), Cause::none);
}

TEST_F(Windows, AreCountedAtTheirRegionUntilTheyGo) {
  ASSERT_EQ(bind(first_, plain_), Cause::none);
  ASSERT_EQ(bind(second_, plain_), Cause::none);
  table_.remove_window(second_);
  EXPECT_TRUE(table_.has_windows(region_));
  EXPECT_TRUE(reach(second_, 1016).is_refused());
  EXPECT_EQ(bind(second_, plain_), Cause::key_unknown);
  table_.unbind_windows_of_region(region_);
  EXPECT_FALSE(table_.has_windows(region_));
  EXPECT_TRUE(table_.remove(region_));
  for (std::uint32_t i = 1; i < RegionTable::kWindowsMost; ++i)
    ASSERT_NE(table_.add_window(verbs::WindowType::type_1, kDomain), 0u);
  EXPECT_EQ(table_.add_window(verbs::WindowType::type_1, kDomain), 0u);
  EXPECT_NE(add_region(0), 0u) << "regions have their own bound";
}

}  // namespace
}  // namespace fairlead::qp
