#include "tests/system_call_counter.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <vector>

#include <fmt/format.h>

namespace fairlead::tests {
namespace {

SystemCallCounts* counts_here = nullptr;

// The one place whose calls the filter lets through. The label marks the address after the instruction, which the
// kernel reports.
#if defined(__x86_64__)
extern "C" long fairlead_tests_call(long number, const long* arguments);
extern "C" const char fairlead_tests_called[];
asm(R"(
  .text
  .globl fairlead_tests_call
  .globl fairlead_tests_called
fairlead_tests_call:
  mov %rdi, %rax
  mov %rsi, %r11
  mov 0(%r11), %rdi
  mov 8(%r11), %rsi
  mov 16(%r11), %rdx
  mov 24(%r11), %r10
  mov 32(%r11), %r8
  mov 40(%r11), %r9
  syscall
fairlead_tests_called:
  ret
)");
constexpr bool kCanCount = true;

long repeat(ucontext_t& context) {
  auto& r = context.uc_mcontext.gregs;
  const long arguments[] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]};
  return r[REG_RAX] = fairlead_tests_call(r[REG_RAX], arguments);
}
#else
constexpr bool kCanCount = false;
const char fairlead_tests_called[1] = {};
long repeat(ucontext_t&) {
  return 0;
}
#endif

void on_call(int, siginfo_t* info, void* context) {
  const auto number = static_cast<std::size_t>(info->si_syscall);
  const bool is_in_vain = repeat(*static_cast<ucontext_t*>(context)) == -EAGAIN;
  auto& counter = is_in_vain ? counts_here->in_vain : counts_here->of.at(number % SystemCallCounts::kNumbers);
  counter.fetch_add(1, std::memory_order_relaxed);
}

bool is_waiting(std::size_t number) {
  constexpr std::size_t kWaiting[] = {SYS_sched_yield,  SYS_clock_nanosleep,
                                      SYS_nanosleep,    SYS_epoll_pwait,
                                      SYS_epoll_pwait2, SYS_ppoll,
#ifdef SYS_epoll_wait
                                      SYS_epoll_wait,   SYS_poll,
#endif
                                      SYS_clock_gettime};
  return std::ranges::find(kWaiting, number) != std::end(kWaiting);
}

}  // namespace

std::uint64_t SystemCallCounts::work() const {
  std::uint64_t sum = 0;
  for (std::size_t number = 0; number < kNumbers; ++number)
    if (!is_waiting(number)) sum += of[number].load(std::memory_order_relaxed);
  return sum;
}

std::string SystemCallCounts::describe_work() const {
  std::string text;
  for (std::size_t number = 0; number < kNumbers; ++number) {
    const std::uint64_t times = of[number].load(std::memory_order_relaxed);
    if (times > 0 && !is_waiting(number))
      text += fmt::format("{}call {} {} times", text.empty() ? "" : ", ", number, times);
  }
  return text;
}

SystemCallCounts& shared_counts() {
  void* const memory =
      ::mmap(nullptr, sizeof(SystemCallCounts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *new (memory) SystemCallCounts;
}

bool count_system_calls(SystemCallCounts& counts) {
  if (!kCanCount) return false;
  counts_here = &counts;
  struct sigaction action{};
  action.sa_sigaction = on_call;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigaction(SIGSYS, &action, nullptr);
  const auto place = reinterpret_cast<std::uint64_t>(fairlead_tests_called);
  constexpr auto word = [](std::size_t at) { return static_cast<std::uint32_t>(at); };
  // Some are made while the C library blocks all signals, at the start and the end of a thread.
  constexpr std::uint32_t kPassed[] = {
      SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_clone, SYS_clone3,          SYS_exit,
      SYS_exit_group,   SYS_execve,         SYS_rseq,  SYS_set_robust_list, SYS_madvise};
  std::vector<sock_filter> filter;
  const auto load = [&](std::size_t at) { filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, word(at))); };
  const auto verdict = [&](std::uint32_t what) { filter.push_back(BPF_STMT(BPF_RET | BPF_K, what)); };
  load(offsetof(seccomp_data, nr));
  for (const std::uint32_t passed : kPassed) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, passed, 0, 1));
    verdict(SECCOMP_RET_ALLOW);
  }
  load(offsetof(seccomp_data, instruction_pointer));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(place), 0, 3));
  load(offsetof(seccomp_data, instruction_pointer) + 4);
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(place >> 32), 0, 1));
  verdict(SECCOMP_RET_ALLOW);
  verdict(SECCOMP_RET_TRAP);
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace fairlead::tests
