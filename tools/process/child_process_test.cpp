#include "tools/process/child_process.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "tools/process/cpu_time.hpp"

namespace fairlead::tools {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr auto kLongTime = 60s;  // only a failing test waits so long

ChildProcess shell(const std::string& script, const ChildOptions& options = {}) {
  return ChildProcess({"sh", "-c", script}, options);
}

TEST(ChildProcess, ItsStreamsAreHeldInMemory) {
  ChildProcess child = shell("cat; echo other >&2; exit 3", {.input = "some text"});
  EXPECT_EQ(child.wait(kLongTime), 3);
  EXPECT_EQ(child.output(), "some text");
  EXPECT_EQ(child.error_output(), "other\n");
}

TEST(ChildProcess, WithoutInputItReadsTheEndOfFile) {
  ChildProcess child({"cat"});
  EXPECT_EQ(child.wait(kLongTime), 0);
  EXPECT_EQ(child.output(), "");
}

TEST(ChildProcess, TheSignalThatEndedItIsItsExitCode) {
  ChildProcess child = shell("kill -TERM $$");
  EXPECT_EQ(child.wait(kLongTime), 128 + SIGTERM);
  child.send_signal(SIGKILL);  // harmless: it has ended
}

TEST(ChildProcess, AMissingProgramIsAnObstacle) {
  ChildProcess child({"no-such-program-anywhere"});
  ASSERT_NE(child.obstacle(), nullptr);
  EXPECT_EQ(child.obstacle()->message, "there is no program no-such-program-anywhere here");
  EXPECT_EQ(child.wait(0s), 127);
  EXPECT_EQ(child.error_output(), child.obstacle()->message + "\n");
}

TEST(ChildProcess, AFileThatTheKernelRefusesSaysWhy) {
  const std::string file = testing::TempDir() + "child_process_test." + std::to_string(::getpid());
  std::ofstream(file) << "no program";
  std::filesystem::permissions(file, std::filesystem::perms(0755));
  ChildProcess child({file});
  EXPECT_EQ(child.wait(kLongTime), 127);
  EXPECT_EQ(child.error_output(), "cannot start " + file + ": Exec format error\n");
  std::filesystem::remove(file);
}

TEST(ChildProcess, AWaitEndsBeforeALongProgram) {
  ChildProcess child({"sleep", "1000"});
  EXPECT_EQ(child.wait(0s), -1);
  child.kill();
  EXPECT_EQ(child.wait(0s), 128 + SIGKILL);
}

TEST(ChildProcess, OneThatIsGivenUpIsKilled) {
  pid_t process = -1;
  {
    const ChildProcess child({"sleep", "1000"});
    process = child.pid();
    EXPECT_EQ(::kill(process, 0), 0);
  }
  EXPECT_EQ(::kill(process, 0), -1);
}

TEST(ChildProcess, ItEndsWithTheThreadThatStartedIt) {
  std::optional<ChildProcess> child;
  std::thread([&] {
    child.emplace(shell("echo ready; exec sleep 1000"));
    EXPECT_TRUE(child->wait_for_text("ready", kLongTime));
  }).join();
  EXPECT_EQ(child->wait(kLongTime), 128 + SIGKILL);
}

TEST(ChildProcess, OutputIsSeenWhileItRuns) {
  ChildProcess child = shell("echo ready; exec sleep 1000");
  EXPECT_TRUE(child.wait_for_text("ready", kLongTime));
  EXPECT_EQ(child.wait(0s), -1);
  ChildProcess silent = shell("echo steady >&2");
  EXPECT_FALSE(silent.wait_for_text("ready", kLongTime)) << "it has ended without";
  EXPECT_TRUE(silent.wait_for_text("steady", 0s));
}

TEST(ChildProcess, OutputThatWasCutGoesOnAtItsEnd) {
  ChildProcess child = shell("echo first; : > /dev/stdout; echo second");
  EXPECT_EQ(child.wait(kLongTime), 0);
  EXPECT_EQ(child.output(), "second\n");
}

TEST(ChildProcess, ADescriptorCanBeKept) {
  const int kept = ::memfd_create("kept", MFD_CLOEXEC), other = ::memfd_create("other", MFD_CLOEXEC);
  ChildProcess child = shell(
      "test -e /dev/fd/" + std::to_string(kept) + " && test ! -e /dev/fd/" + std::to_string(other), {.kept = kept});
  EXPECT_EQ(child.wait(kLongTime), 0);
  EXPECT_NE(::fcntl(kept, F_GETFD) & FD_CLOEXEC, 0) << "for other children";
  ::close(kept);
  ::close(other);
}

TEST(ChildProcess, AClosedStandardInputOfOursDoesNotMatter) {
  const int saved = ::dup(STDIN_FILENO);
  ::close(STDIN_FILENO);
  ChildProcess child({"cat"}, {.input = "text"});
  EXPECT_EQ(child.wait(kLongTime), 0);
  EXPECT_EQ(child.output(), "text");
  if (saved >= 0) ::dup2(saved, STDIN_FILENO), ::close(saved);
}

TEST(ChildProcess, ExitCodesAreKeptIfOurParentIgnoredSigchld) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  ChildProcess child = shell("exit 5");
  EXPECT_EQ(child.wait(kLongTime), 5);
  std::signal(SIGCHLD, before);
}

TEST(ChildProcess, AMovedOneKeepsTheProcess) {
  ChildProcess first({"sleep", "1000"});
  const pid_t process = first.pid();
  ChildProcess second(std::move(first));
  EXPECT_EQ(second.pid(), process);
  EXPECT_EQ(second.wait(0s), -1);
}

TEST(ChildProcess, CpuTimeIsThatOfTheProcess) {
  ChildProcess child = shell("while :; do :; done");
  while (cpu_time_of(child.pid()).value_or(0ns) < 5ms) ASSERT_EQ(child.wait(1ms), -1);
  const pid_t process = child.pid();
  child.kill();
  EXPECT_EQ(cpu_time_of(process), std::nullopt);
}

TEST(RunProgram, AFailureNamesTheLastLine) {
  EXPECT_EQ(run_program({"cat"}, "input").value(), "input");
  const auto failed = run_program({"sh", "-c", "echo first >&2; echo last >&2; exit 4"});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("ended with code 4: last"));
  const auto late = run_program({"sleep", "1000"}, {}, 1ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message, "sleep 1000 did not end in time: it said nothing");
}

}  // namespace
}  // namespace fairlead::tools
