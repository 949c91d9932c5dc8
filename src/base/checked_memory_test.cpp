#include "base/checked_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>

namespace fairlead::base {
namespace {

class CheckedMemory : public ::testing::Test {
 protected:
  ~CheckedMemory() override { ::munmap(pages_, 3 * page_); }

  const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // The first may be written, the second only read, the third not even that.
  std::byte* const pages_ = [this] {
    void* const all = ::mmap(nullptr, 3 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* const first = static_cast<std::byte*>(all);
    EXPECT_EQ(::mprotect(first + page_, page_, PROT_READ), 0);
    EXPECT_EQ(::mprotect(first + 2 * page_, page_, PROT_NONE), 0);
    return first;
  }();
  std::array<std::byte, 64> bytes_{std::byte{7}};
};

TEST_F(CheckedMemory, IsCopiedWhereItIs) {
  ASSERT_TRUE(write_checked(pages_ + page_ - 64, bytes_.data(), 64));
  EXPECT_EQ(pages_[page_ - 64], std::byte{7});
  std::array<std::byte, 64> back{};
  ASSERT_TRUE(read_checked(back.data(), pages_ + page_ - 64, 64));
  EXPECT_EQ(back, bytes_);
  EXPECT_TRUE(read_checked(back.data(), pages_ + 2 * page_ - 64, 64));
  EXPECT_TRUE(read_checked(back.data(), nullptr, 0));
}

TEST_F(CheckedMemory, IsRefusedWhereItIsNot) {
  EXPECT_FALSE(write_checked(pages_ + page_, bytes_.data(), 64));
  EXPECT_FALSE(write_checked(pages_ + page_ - 32, bytes_.data(), 64)) << "part of it";
  EXPECT_FALSE(read_checked(bytes_.data(), pages_ + 2 * page_, 64));
  EXPECT_FALSE(read_checked(bytes_.data(), pages_ + 2 * page_ - 32, 64)) << "part of it";
  EXPECT_FALSE(read_checked(bytes_.data(), nullptr, 64));
  EXPECT_FALSE(write_checked(reinterpret_cast<void*>(UINTPTR_MAX - 4), bytes_.data(), 64));
}

}  // namespace
}  // namespace fairlead::base
