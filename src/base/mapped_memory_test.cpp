#include "base/mapped_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/process_memory.hpp"

namespace fairlead::base {
namespace {

TEST(MappedMemory, IsJudgedByEveryPageAndByItsRights) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* mapping = ::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  auto* memory = static_cast<char*>(mapping);
  EXPECT_EQ(probe_memory(memory + 1, 4 * page - 1, true), 0);
  ASSERT_EQ(::mprotect(memory + page, page, PROT_READ), 0);
  EXPECT_EQ(probe_memory(memory, 2 * page, false), 0);
  EXPECT_EQ(probe_memory(memory, 2 * page, true), EFAULT);
  ASSERT_EQ(::munmap(memory + 2 * page, page), 0);
  EXPECT_EQ(probe_memory(memory, 4 * page, false), EFAULT);
  EXPECT_EQ(probe_memory(memory + 3 * page, page, true), 0);
  EXPECT_EQ(probe_memory(memory + 2 * page, 0, true), 0);
  EXPECT_EQ(probe_memory(memory, ~std::uint64_t{0}, false), EFAULT);
  EXPECT_EQ(probe_memory(nullptr, 1, false), EFAULT);
  ::munmap(memory, 4 * page);
}

TEST(MappedMemory, IsJudgedByItsMappingsWithoutTouchingIt) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t size = 1024 * page;
  void* mapping = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  auto* memory = static_cast<std::byte*>(mapping);
  EXPECT_TRUE(is_mapped({memory + 1, size - 1}, true));
  std::vector<unsigned char> resident(1024);
  ASSERT_EQ(::mincore(memory, size, resident.data()), 0);
  EXPECT_EQ(std::ranges::count_if(resident, [](unsigned char one) { return (one & 1) != 0; }), 0);
  ASSERT_EQ(::mprotect(memory + page, page, PROT_READ), 0);
  EXPECT_TRUE(is_mapped({memory, size}, false));
  EXPECT_FALSE(is_mapped({memory, size}, true));
  EXPECT_TRUE(is_mapped({memory, page}, true));
  ASSERT_EQ(::mprotect(memory + page, page, PROT_NONE), 0);
  EXPECT_FALSE(is_mapped({memory, 2 * page}, false));
  ASSERT_EQ(::munmap(memory + page, page), 0);
  EXPECT_FALSE(is_mapped({memory, 3 * page}, false));
  EXPECT_TRUE(is_mapped({memory + 2 * page, size - 2 * page}, true));
  ::munmap(memory, size);
}

}  // namespace
}  // namespace fairlead::base
