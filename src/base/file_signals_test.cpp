// Writes that would end the process by a signal.

#include "base/file_signals.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <string>

#include "base/file_descriptor.hpp"

namespace fairlead::base {
namespace {

// Runs in a child, which the signals would end; returns its exit code, or 128 + the signal.
int in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void limit_files(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

TEST(FileSignals, BeyondTheLimitOfFileSizesIsAnErrorOnly) {
  EXPECT_EQ(in_child([] {
              const FileDescriptor file(::memfd_create("test", MFD_CLOEXEC));
              limit_files(8192);
              if (!resize_file(file.get(), 8192)) return 1;
              if (resize_file(file.get(), 8193) || errno != EFBIG) return 2;
              if (change_room(file.get(), 0, 0, 16384) || errno != EFBIG) return 3;
              const std::array<std::byte, 16> bytes{};
              if (!write_all_at(file.get(), bytes, 8176)) return 4;
              if (write_all_at(file.get(), bytes, 8184) || errno != EFBIG) return 5;
              if (::lseek(file.get(), 8192, SEEK_SET) != 8192 || write_now(file.get(), "more") != 0) return 6;
              return 0;
            }),
            0);
}

TEST(FileSignals, APipeThatNobodyReadsIsAnErrorOnly) {
  EXPECT_EQ(in_child([] {
              std::array<int, 2> pipe{};
              if (::pipe(pipe.data()) != 0) return 1;
              ::close(pipe[0]);
              return write_now(pipe[1], "text") == 0 ? 0 : 2;
            }),
            0);
}

TEST(FileSignals, AFullPipeIsNotWaitedFor) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const FileDescriptor reader(pipe[0]), writer(pipe[1]);
  const std::string text(1 << 20, 'x');
  const std::size_t taken = write_now(writer.get(), text);
  EXPECT_GT(taken, 0u);
  EXPECT_LT(taken, text.size());
  EXPECT_EQ(write_now(writer.get(), text), 0u);
}

// A signal that the program had blocked and pending is still delivered.
TEST(FileSignals, OnlyOurOwnAreTakenAway) {
  sigset_t broken, before, pending;
  ::sigemptyset(&broken);
  ::sigaddset(&broken, SIGPIPE);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &broken, &before), 0);
  ::raise(SIGPIPE);
  {
    const NoFileSignals quiet;
  }
  ASSERT_EQ(::sigpending(&pending), 0);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 1);
  constexpr timespec kNow{};
  EXPECT_EQ(::sigtimedwait(&broken, nullptr, &kNow), SIGPIPE);
  {
    const NoFileSignals quiet;
    ::raise(SIGPIPE);
    ::raise(SIGXFSZ);
  }
  ASSERT_EQ(::sigpending(&pending), 0);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
  EXPECT_EQ(::sigismember(&pending, SIGXFSZ), 0);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

}  // namespace
}  // namespace fairlead::base
