// A process with tight resource limits gets an error that names the limit, and no signal.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "base/child_for_tests.hpp"
#include "shm/arena.hpp"
#include "shm/memory.hpp"
#include "shm/remapped_ranges.hpp"

namespace fairlead::shm {
namespace {

void limit_file_sizes(rlim_t bytes) {
  const rlimit limit{bytes, RLIM_INFINITY};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

bool names_limit(const Error& error) {
  return error.system_errno == EFBIG && error.message.find("ulimit -f") != std::string::npos;
}

TEST(ShmLimits, OfFileSizesAreErrorsThatNameThem) {
  EXPECT_EQ(base::exit_of_child([] {
              limit_file_sizes(64 << 10);
              const auto memory = Memory::create({.head_bytes = 4096, .ring_bytes = 256 << 10, .rings = 2});
              if (memory || !names_limit(memory.error())) return 1;
              const auto arena = Arena::create(4096, 1 << 30);
              return !arena && names_limit(arena.error()) ? 0 : 2;
            }),
            0);
}

// The limits are lowered after the arena was created: nothing more is moved there, or moved memory is moved out.
TEST(ShmLimits, LoweredLaterTheyHoldUpOnlyWhatIsNew) {
  EXPECT_EQ(base::exit_of_child([] {
              constexpr std::size_t kBytes = 1 << 20;
              auto arena = Arena::create(4096, 16 << 20);
              if (!arena) return 1;
              RemappedRanges remapped(*arena, 0);
              auto* const memory = static_cast<std::byte*>(std::aligned_alloc(4096, kBytes));
              memory[5] = std::byte{77};
              limit_file_sizes(8192);
              static_cast<void>(remapped.take({memory, kBytes}, true));
              return memory[5] == std::byte{77} ? 0 : 2;
            }),
            0);
}

// Reserved huge pages may run out when the memory is touched, which would raise a signal.
TEST(ShmLimits, MemoryOfReservedHugePagesIsRefused) {
  constexpr std::size_t kBytes = 2 << 20;
  const base::FileDescriptor file(::memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  ASSERT_TRUE(file.is_open());
  ASSERT_EQ(::ftruncate(file.get(), kBytes), 0);
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  const auto memory = Memory::adopt(file.get(), {.head_bytes = kBytes});
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().status, Status::invalid) << memory.error().message;
}

std::uint64_t bytes_there(const Memory& memory) {
  struct stat facts{};
  return ::fstat(memory.descriptor(), &facts) == 0 ? static_cast<std::uint64_t>(facts.st_blocks) * 512 : ~0ULL;
}

constexpr Memory::Layout kPair{.head_bytes = 4096, .ring_bytes = 256 << 10, .rings = 2};

TEST(ShmLimits, MemoryIsTakenAtOnceWhereItMayBeMissingLater) {
  EXPECT_EQ(bytes_there(Memory::create(kPair).value()), 0u);
  EXPECT_EQ(bytes_there(Memory::create(kPair, true).value()), kPair.file_bytes());
}

TEST(ShmLimits, MemoryThatIsNotToBeHadIsRefused) {
  EXPECT_EQ(base::exit_of_child([] {
              std::array<sock_filter, 4> rules{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
                                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
                                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
              const sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
              if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
                return 1;
              const auto memory = Memory::create(kPair, true);
              return !memory && memory.error().system_errno == ENOSPC ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace fairlead::shm
