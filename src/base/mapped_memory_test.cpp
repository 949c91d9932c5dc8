#include "base/mapped_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

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

}  // namespace
}  // namespace fairlead::base
