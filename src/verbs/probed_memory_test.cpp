#include "verbs/probed_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace fairlead::verbs {
namespace {

class ProbedMemoryTest : public testing::Test {
 protected:
  static constexpr std::size_t kPages = 64;

  void SetUp() override {
    void* const mapping = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapping, MAP_FAILED);
    memory_ = static_cast<std::byte*>(mapping);
  }
  void TearDown() override { ::munmap(memory_, size_); }
  /// Returns whether the pages were touched since they were last given back.
  bool is_touched() const {
    std::vector<unsigned char> resident(kPages);
    ::mincore(memory_, size_, resident.data());
    return std::ranges::any_of(resident, [](unsigned char one) { return (one & 1) != 0; });
  }
  void give_pages_back() const { ::madvise(memory_, size_, MADV_DONTNEED); }

  const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), size_ = kPages * page_;
  std::byte* memory_ = nullptr;
  ProbedMemory probed_;
};

TEST_F(ProbedMemoryTest, OfALiveRegionIsNotTouchedAgain) {
  ProbedMemory::Use whole, again, part, other;
  ASSERT_EQ(probed_.enter(memory_, size_, true, whole), 0);
  EXPECT_TRUE(is_touched());
  give_pages_back();
  ASSERT_EQ(probed_.enter(memory_, size_, true, again), 0);
  ASSERT_EQ(probed_.enter(memory_ + page_, page_, true, part), 0);
  EXPECT_FALSE(is_touched());
  probed_.leave(whole);
  probed_.leave(again);
  ASSERT_EQ(probed_.enter(memory_ + page_, page_, true, other), 0);
  EXPECT_FALSE(is_touched()) << "a region is left";
  probed_.leave(part);
  probed_.leave(other);
  ASSERT_EQ(probed_.enter(memory_, size_, true, whole), 0);
  EXPECT_TRUE(is_touched()) << "no region is left";
}

TEST_F(ProbedMemoryTest, IsProbedBeyondWhatIsKnownAndForMoreRights) {
  ProbedMemory::Use half, whole, written;
  ASSERT_EQ(::mprotect(memory_ + size_ / 2, size_ / 2, PROT_READ), 0);
  ASSERT_EQ(probed_.enter(memory_, size_ / 2, true, half), 0);
  EXPECT_EQ(probed_.enter(memory_, size_, true, whole), EFAULT);
  EXPECT_FALSE(whole.is_counted);
  ASSERT_EQ(probed_.enter(memory_, size_, false, whole), 0);
  EXPECT_EQ(probed_.enter(memory_, size_, true, written), EFAULT) << "known as readable only";
  EXPECT_EQ(probed_.enter(memory_, UINT64_MAX, false, written), EFAULT);
  EXPECT_EQ(probed_.enter(nullptr, 1, false, written), EFAULT);
  EXPECT_EQ(probed_.enter(memory_, 0, false, written), 0);
  EXPECT_FALSE(written.is_counted);
}

}  // namespace
}  // namespace fairlead::verbs
