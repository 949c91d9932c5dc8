#include "base/page_memory.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace fairlead::base {
namespace {

TEST(PageMemory, IsZeroAlignedAndAsLongAsAsked) {
  for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{5000}, std::uint64_t{3} << 20}) {
    const auto memory = PageMemory::allocate(size);
    ASSERT_TRUE(memory);
    const auto bytes = memory->bytes();
    ASSERT_EQ(bytes.size(), size);
    const std::size_t alignment = size >= PageMemory::kHugePage ? PageMemory::kHugePage : 4096;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment, 0U);
    EXPECT_EQ(bytes.front(), std::byte{0});
    bytes.back() = std::byte{1};
  }
}

TEST(PageMemory, MovesItsOwnership) {
  PageMemory first = PageMemory::allocate(4096).value();
  const std::byte* place = first.bytes().data();
  PageMemory second = std::move(first);
  EXPECT_TRUE(first.bytes().empty());
  EXPECT_EQ(second.bytes().data(), place);
}

TEST(PageMemory, RefusesWhatNoHostHas) {
  const auto memory = PageMemory::allocate(~std::uint64_t{0});
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().status, Status::no_memory);
}

}  // namespace
}  // namespace fairlead::base
