// Memory that only processes can map which may trace its owner.

#include "shm/traced_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <string>

#include "base/child_for_tests.hpp"

namespace fairlead::shm {
namespace {

constexpr std::uint64_t kTraced = 1U << 20, kMoved = 64U << 10;

std::span<std::byte> anonymous_pages() {
  void* const pages = ::mmap(nullptr, kMoved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(pages, MAP_FAILED);
  std::memset(pages, 0x5a, kMoved);
  return {static_cast<std::byte*>(pages), kMoved};
}

TEST(TracedMemory, IsSafeOnlyWhereYamaRestrictsNothing) {
  const std::string file = testing::TempDir() + "traced_scope_" + std::to_string(::getpid());
  const auto is_safe_with = [&](const char* text) {
    std::ofstream(file) << text;
    return TracedMemory::is_safe(file.c_str());
  };
  EXPECT_TRUE(is_safe_with("0\n"));
  EXPECT_FALSE(is_safe_with("1\n"));
  EXPECT_FALSE(is_safe_with("2\n"));
  EXPECT_FALSE(is_safe_with("")) << "nobody knows";
  ::unlink(file.c_str());
  EXPECT_TRUE(TracedMemory::is_safe(file.c_str())) << "no Yama";
  EXPECT_FALSE(TracedMemory::is_safe((testing::TempDir() + std::string(300, 'n')).c_str())) << "nobody knows";
}

TEST(TracedMemory, IsReadOnlyForWhoFetchesIt) {
  const auto traced = TracedMemory::create(kTraced);
  ASSERT_TRUE(traced);
  const auto pages = anonymous_pages();
  const auto place = traced->take(pages, true);
  ASSERT_TRUE(place);
  const auto process = TracedMemory::open_process(::getpid());
  const auto seen = TracedMemory::fetch(process, traced->descriptor(), kTraced);
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(seen->head()[place->offset], std::byte{0x5a});
  pages[0] = std::byte{7};
  EXPECT_EQ(seen->head()[place->offset], std::byte{7}) << "it is the same memory";
  const base::FileDescriptor zeros(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(::read(zeros.get(), seen->head(), 1), -1);
  EXPECT_EQ(errno, EFAULT);
  traced->ranges().release(place->remap, true);
  EXPECT_EQ(pages[0], std::byte{7});
  EXPECT_EQ(seen->head()[place->offset], std::byte{0}) << "given back";
  ::munmap(pages.data(), pages.size());
}

TEST(TracedMemory, AnotherDescriptorIsRefused) {
  const auto traced = TracedMemory::create(kTraced);
  ASSERT_TRUE(traced);
  const auto process = TracedMemory::open_process(::getpid());
  EXPECT_FALSE(TracedMemory::fetch(process, traced->descriptor(), 2 * kTraced)) << "of another size";
  EXPECT_FALSE(TracedMemory::fetch(process, -1, kTraced));
  const base::FileDescriptor unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kTraced), 0);
  EXPECT_FALSE(TracedMemory::fetch(process, unsealed.get(), kTraced)) << "it could shrink";
  EXPECT_FALSE(TracedMemory::fetch(TracedMemory::open_process(0), traced->descriptor(), kTraced)) << "no process";
}

/// An ordinary user. As root, a process may trace all others.
bool become_ordinary() {
  return ::geteuid() != 0 || (::setresgid(65534, 65534, 65534) == 0 && ::setresuid(65534, 65534, 65534) == 0);
}

/// Whether one process of a user can fetch the memory of another, which sets PR_SET_DUMPABLE to this.
bool can_fetch_from(int dumpable) {
  std::array<int, 2> told{}, over{};
  EXPECT_EQ(::pipe2(told.data(), O_CLOEXEC), 0);
  EXPECT_EQ(::pipe2(over.data(), O_CLOEXEC), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    ::close(over[1]);
    if (!become_ordinary()) ::_exit(1);
    const auto traced = TracedMemory::create(kTraced);
    ::prctl(PR_SET_DUMPABLE, dumpable);
    const int file = traced ? traced->descriptor() : -1;
    char end = 0;
    // Waits for the end of the pipe, which its parent closes.
    const bool is_told = ::write(told[1], &file, sizeof file) == sizeof file && ::read(over[0], &end, 1) == 0;
    ::_exit(is_told ? 0 : 1);
  }
  int file = -1;
  EXPECT_EQ(::read(told[0], &file, sizeof file), static_cast<ssize_t>(sizeof file));
  EXPECT_GE(file, 0);
  const int result = base::exit_of_child([&] {
    if (!become_ordinary()) return 2;
    return TracedMemory::fetch(TracedMemory::open_process(owner), file, kTraced) ? 0 : 1;
  });
  for (const int end : {told[0], told[1], over[0], over[1]}) ::close(end);
  int ended = 0;
  EXPECT_EQ(::waitpid(owner, &ended, 0), owner);
  EXPECT_EQ(ended, 0);
  EXPECT_LT(result, 2);
  return result == 0;
}

TEST(TracedMemory, OnlyWhoMayTraceTheOwnerFetchesIt) {
  EXPECT_EQ(can_fetch_from(1), TracedMemory::is_safe()) << "Yama permits it to nobody but parents";
  EXPECT_FALSE(can_fetch_from(0));
}

TEST(TracedMemory, TakesNothingWhileNobodyMayTraceTheProcess) {
  EXPECT_EQ(base::exit_of_child([] {
              const auto traced = TracedMemory::create(kTraced);
              const auto pages = anonymous_pages();
              ::prctl(PR_SET_DUMPABLE, 0);
              if (traced->take(pages, true)) return 1;
              ::prctl(PR_SET_DUMPABLE, 1);
              return traced->take(pages, true) ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace fairlead::shm
