// Each system call of programs that use the library fails once, in either of two processes that talk to each other.
// Both processes end within a bounded time, with success or with an error that names the kernel's error. No process
// dies by a signal, hangs, gets wrong bytes, or leaves descriptors, memory or threads behind.
//
// The first call of each kind fails, and a third of the others, selected by the commit. FAIRLEAD_TEST_FULL=1: all of
// them. FAIRLEAD_TEST_CALL=mmap: only calls of that name.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/environment.hpp"
#include "tests/failing_calls/failing_kernel.hpp"
#include "tests/failing_calls/scenario.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;

constexpr auto kEndsWithin = 40s;
constexpr unsigned kCallsMost = 300;  // of a kind in one run; of kinds that repeat without end, the first ones
constexpr unsigned kRepeatedMost = 8;
constexpr std::uint64_t kShare = 3;

/// What a process leaves behind, in memory that it shares with the test.
struct Report {
  char error[512];
  bool is_status, is_over;
  char refused[4096];
  int files_before, files_after;
  int mappings_after, threads_after;
};

template <std::size_t kSize>
void write_text(char (&to)[kSize], const std::string& text) {
  to[text.copy(to, kSize - 1)] = '\0';
}

int count_of(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<int>(std::distance(begin(all), end(all)));
}

/// Counts mappings shared with other processes. Private mappings of files are harmless.
int shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.contains("memfd:fairlead") && line.contains("rw-s") ? 1 : 0;
  return count;
}

using Faults = std::vector<std::string>;

struct Script {
  const char* name;
  Ending (*play)(const Part& part);
  const char* path;
};

/// A thread closes descriptors that other processes have sent. Wait until it has finished.
void wait_for_closers() {
  const auto until = std::chrono::steady_clock::now() + kEndsWithin / 8;
  while (count_of("/proc/self/task") > 1 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
}

/// The address of one end of a pair. Tests run in parallel, and datagrams to a dead process go to the next process with
/// its address and keys. So no two pairs share an address.
std::string own_ip(pid_t test, int index) {
  const auto number = 2 * static_cast<unsigned>(test) + static_cast<unsigned>(index);
  return fmt::format("127.{}.{}.{}", number >> 16 & 0xff, number >> 8 & 0xff, number & 0xff);
}

Ending play_part(const Script& script, const Part& part) {
  try {
    return script.play(part);
  } catch (const std::exception& exception) {
    return {std::string("wrong: an exception: ") + exception.what()};
  }
}

class FailingCalls : public testing::TestWithParam<std::tuple<Script, bool>> {
 protected:
  FailingCalls() {
    void* const shared = ::mmap(nullptr, 2 * sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    reports_ = static_cast<Report*>(shared);
  }
  ~FailingCalls() override { ::munmap(reports_, 2 * sizeof(Report)); }

  [[noreturn]] void live(int index, int socket, const Refusal* refusal, unsigned number) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Report& report = reports_[index];
    const Script& script = std::get<0>(GetParam());
    report.files_before = count_of("/proc/self/fd");
    if (refusal != nullptr) FailingKernel::arm(*refusal, number);
    const Ending ending = play_part(
        script, {.is_first = index == 0, .socket = socket, .ip = own_ip(::getppid(), index), .path = script.path});
    FailingKernel::disarm();
    wait_for_closers();
    write_text(report.error, ending.error);
    report.is_status = ending.is_status;
    write_text(report.refused, FailingKernel::refused());
    report.files_after = count_of("/proc/self/fd");
    report.mappings_after = shared_mappings();
    report.threads_after = count_of("/proc/self/task");
    report.is_over = true;
    ::_exit(0);
  }

  /// Runs both processes and refuses a call in the one with index `refused`. Returns what went wrong.
  Faults play(int refused, const Refusal* refusal, unsigned number) {
    std::memset(static_cast<void*>(reports_), 0, 2 * sizeof(Report));
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    std::array<pid_t, 2> processes{};
    for (int i = 0; i < 2; ++i) {
      processes[i] = ::fork();
      if (processes[i] != 0) continue;
      ::close(ends[1 - i]);
      live(i, ends[i], i == refused ? refusal : nullptr, number);
    }
    ::close(ends[0]);
    ::close(ends[1]);
    const auto deadline = std::chrono::steady_clock::now() + kEndsWithin;
    Faults faults;
    for (int i = 0; i < 2; ++i) {
      const int status = wait_for(processes[static_cast<std::size_t>(i)], deadline);
      if (WIFSIGNALED(status)) faults.push_back(fmt::format("process {}: {}", i, ::strsignal(WTERMSIG(status))));
      if (!reports_[i].is_over) faults.push_back(fmt::format("process {} did not come to its end", i));
    }
    return faults;
  }

  static int wait_for(pid_t process, std::chrono::steady_clock::time_point deadline) {
    int status = 0;
    while (::waitpid(process, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) ::kill(process, SIGKILL);
      std::this_thread::sleep_for(1ms);
    }
    return status;
  }

  void judge(int refused, const Refusal& refusal, Faults& faults) const {
    const Report &own = reports_[refused], &other = reports_[1 - refused];
    const auto expect = [&](bool is_right, const std::string& fault) {
      if (!is_right) faults.push_back(fault);
    };
    const std::string said = own.error;
    const bool is_named = said.contains(std::strerror(refusal.error)) ||
                          (refusal.error == ENOMEM && said.contains("no memory"));  // short: it needs none itself
    expect(said.empty() || own.is_status || is_named, "it does not say what the kernel said");
    expect(!said.empty() || other.error[0] == 0, "only the other one failed");
    for (int i = 0; i < 2; ++i) {
      const Report& report = reports_[i];
      if (!report.is_over) continue;
      const std::string error = report.error;
      expect(!error.contains("hangs") && !error.contains("wrong"), fmt::format("process {}: {}", i, error));
      expect(report.files_after == report.files_before,
             fmt::format("process {}: {} descriptors more", i, report.files_after - report.files_before));
      expect(report.mappings_after == 0, fmt::format("process {}: {} mappings are left", i, report.mappings_after));
      expect(report.threads_after == 1, fmt::format("process {}: {} threads are left", i, report.threads_after - 1));
    }
  }

  Report* reports_ = nullptr;
};

bool is_chosen(const Refusal& refusal) {
  const char* wanted = std::getenv("FAIRLEAD_TEST_CALL");
  return wanted == nullptr || std::strcmp(wanted, refusal.name) == 0;
}

TEST_P(FailingCalls, EndWellOrWithTheirReason) {
  const int refused = std::get<1>(GetParam()) ? 0 : 1;
  ASSERT_TRUE(play(refused, nullptr, 0).empty());
  for (int i = 0; i < 2; ++i) ASSERT_STREQ(reports_[i].error, "") << "without any failure";
  for (const Refusal& refusal : all_refusals()) {
    if (!is_chosen(refusal)) continue;
    const bool repeats = refusal.call == Call::sendmsg || refusal.call == Call::send || refusal.call == Call::sendto;
    const unsigned most = repeats ? kRepeatedMost : kCallsMost;
    bool was_refused = true;
    for (unsigned number = 1; number <= most && was_refused; ++number) {
      if (number > 1 && !is_drawn(number + static_cast<std::uint64_t>(refusal.call), kShare)) continue;
      Faults faults = play(refused, &refusal, number);
      judge(refused, refusal, faults);
      was_refused = reports_[refused].refused[0] != 0;
      EXPECT_TRUE(faults.empty()) << refusal.name << " no. " << number << " of process " << refused << " failed with '"
                                  << std::strerror(refusal.error) << "': " << fmt::format("{}", fmt::join(faults, "; "))
                                  << "\nended: '" << reports_[refused].error << "', the other: '"
                                  << reports_[1 - refused].error << "'\n"
                                  << reports_[refused].refused;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Scenarios, FailingCalls,
                         testing::Combine(testing::Values(Script{"transfer_udp", &transfer_messages, "udp"},
                                                          Script{"transfer_shm", &transfer_messages, "shm"},
                                                          Script{"verbs_udp", &use_queue_pairs, "udp"},
                                                          Script{"verbs_shm", &use_queue_pairs, "shm"},
                                                          Script{"active_udp", &send_active_messages, "udp"},
                                                          Script{"active_shm", &send_active_messages, "shm"}),
                                          testing::Bool()),
                         [](const auto& test) {
                           return fmt::format("{}_{}", std::get<0>(test.param).name,
                                              std::get<1>(test.param) ? "first" : "second");
                         });

}  // namespace
}  // namespace fairlead::tests
