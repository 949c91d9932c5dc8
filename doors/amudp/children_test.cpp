// A console's processes: another process reaps them, or their output has no reader.

#include "doors/amudp/children.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/child_for_tests.hpp"

namespace fairlead::amudp {
namespace {

struct TestPipe {
  base::FileDescriptor from, to;
};

TestPipe make_pipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  return {base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
}

// A process that runs `work`.
template <typename Work>
Child start_child(Work&& work) {
  const pid_t pid = fork();
  if (pid == 0) {
    work();
    _exit(0);
  }
  return {
      .pid = pid, .process = base::FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))), .outputs = {}};
}

bool has_number(pid_t wanted) {
  const int file = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
  const std::string text = std::to_string(wanted - 1);
  const bool is_set = file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0) close(file);
  return is_set;
}

// In a PID namespace of its own, where a PID can be reused at once.
constexpr int kCannotTell = 77;
int number_given_again() {
  if (unshare(CLONE_NEWPID) != 0) return kCannotTell;
  return base::exit_of_child([] {
    Children children;
    Child first = start_child([] {});
    const pid_t number = first.pid;
    children.add(std::move(first));
    if (waitpid(number, nullptr, 0) != number) return 1;  // reaped by others, as if SIGCHLD were ignored
    if (!has_number(number)) return kCannotTell;
    const Child innocent = start_child([] { pause(); });
    if (innocent.pid != number) return kCannotTell;
    children.kill_all();
    children.serve();
    kill(number, SIGTERM);  // if it has not been killed before
    int status = 0;
    if (waitpid(number, &status, 0) != number) return 2;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? 0 : 3;
  });
}

TEST(AmudpChildren, AnotherProcessOfTheSameNumberIsNotKilled) {
  const int outcome = base::exit_of_child(&number_given_again);
  if (outcome == kCannotTell) GTEST_SKIP() << "process numbers cannot be chosen here: not root";
  EXPECT_EQ(outcome, 0);
}

TEST(AmudpChildren, TheirEndIsToldOnceWithItsCause) {
  Children children;
  Child killed = start_child([] { raise(SIGKILL); }), ended = start_child([] { _exit(7); });
  const pid_t first = killed.pid, second = ended.pid;
  children.add(std::move(killed));
  children.add(std::move(ended));
  children.wait_for_end_of(first, -1);
  children.wait_for_end_of(second, -1);
  EXPECT_EQ(children.how_it_ended(first), "killed by signal 9 (Killed)");
  EXPECT_EQ(children.how_it_ended(second), "exit code 7");
  EXPECT_EQ(children.how_it_ended(1), "its connection closed");
  EXPECT_EQ(children.take_ended()->pid, first);
  EXPECT_EQ(children.take_ended()->pid, second);
  EXPECT_EQ(children.take_ended(), nullptr);
}

TEST(AmudpChildren, AReaderThatStopsHoldsUpWhoWritesAndNobodyElse) {
  TestPipe shown = make_pipe();
  EXPECT_EQ(base::exit_of_child([&] {
              const std::string line(1000, 'x');
              constexpr std::size_t kLines = 1000;
              if (dup2(shown.to.get(), STDOUT_FILENO) != STDOUT_FILENO) return 1;
              shown.to.reset();
              TestPipe output = make_pipe();
              Child writer = start_child([&] {
                for (std::size_t i = 0; i < kLines; ++i) {
                  if (write(output.to.get(), (line + "\n").data(), line.size() + 1) < 0) _exit(1);
                }
              });
              output.to.reset();
              writer.outputs[0].from = std::move(output.from);
              Children children;
              children.add(std::move(writer));
              std::vector<pollfd> looks;
              const auto look = [&] {  // one poll, with a short wait
                looks.clear();
                children.watch(looks);
                poll(looks.data(), looks.size(), 10);
                children.serve();
              };
              for (int i = 0; i < 50; ++i) look();  // the output has no reader
              if (!children.has_output() || children.has_lost_reader()) return 2;
              std::size_t taken = 0;
              std::string piece(65536, ' ');
              fcntl(shown.from.get(), F_SETFL, O_NONBLOCK);
              for (bool is_over = false; !is_over;) {
                is_over = !children.has_output();
                const ssize_t count = read(shown.from.get(), piece.data(), piece.size());
                if (count > 0) {
                  taken += static_cast<std::size_t>(count);
                  is_over = false;
                }
                look();
              }
              if (taken != kLines * (line.size() + 1)) return 3;
              return 0;
            }),
            0);
}

TEST(AmudpChildren, AReaderThatIsGoneIsNoticed) {
  EXPECT_EQ(base::exit_of_child([] {
              TestPipe shown = make_pipe();
              if (dup2(shown.to.get(), STDOUT_FILENO) != STDOUT_FILENO) return 1;
              shown.from.reset();
              Outlet out(STDOUT_FILENO);
              out.put("text\n");
              return out.has_lost_reader() && !out.is_waiting() ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace fairlead::amudp
