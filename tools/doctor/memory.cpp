// Memory that local processes share, or that one copies from another.

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file_descriptor.hpp"
#include "tools/doctor/host.hpp"
#include "tools/doctor/kernel_facts.hpp"

namespace fairlead::tools {
namespace {

void try_shared_memory(Findings& findings) {
  const base::FileDescriptor memory(::memfd_create("fairlead-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory.get() < 0 || ::ftruncate(memory.get(), 4096) != 0) {
    findings.push_back({Verdict::note, "memory",
                        fmt::format("no memfd ({}): peers of this host are reached over UDP", std::strerror(errno)),
                        "allow memfd_create in the seccomp filter"});
    return;
  }
  findings.push_back({Verdict::good, "memory", "memory can be shared with processes of this host", {}});
  if (const auto pages = line_of("/sys/kernel/mm/transparent_hugepage/shmem_enabled"))
    findings.push_back({Verdict::good, "memory", "huge pages for shared memory: " + *pages, {}});
  if (number_of("/proc/sys/vm/overcommit_memory") == 2) {
    findings.push_back({Verdict::note, "memory", "vm.overcommit_memory is 2: shared pages are taken when they are made",
                        "each peer of this host costs 516 KiB at once"});
  }
}

/// Tests whether an unrelated process may read our memory. A child tries to read its parent's memory, which
/// ptrace_scope 1 forbids as for unrelated processes.
void try_cross_memory(Findings& findings) {
  static const std::uint64_t there = 0x0123456789abcdef;
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    std::uint64_t here = 0;
    const iovec to{&here, sizeof here}, from{const_cast<std::uint64_t*>(&there), sizeof there};
    const bool is_read = ::process_vm_readv(parent, &to, 1, &from, 1, 0) == sizeof here && here == there;
    ::_exit(is_read ? 0 : std::max(errno, 1));
  }
  int ended = 0;
  if (child < 0 || ::waitpid(child, &ended, 0) != child || !WIFEXITED(ended)) return;
  if (WEXITSTATUS(ended) == 0) {
    findings.push_back({Verdict::good, "memory", "processes of this user may copy from each other's memory", {}});
    return;
  }
  const auto scope = line_of("/proc/sys/kernel/yama/ptrace_scope");
  findings.push_back({Verdict::note, "memory",
                      fmt::format("processes may not copy from each other's memory ({}; kernel.yama.ptrace_scope {}): "
                                  "memory outside the shared arena is copied through rings",
                                  std::strerror(WEXITSTATUS(ended)), scope.value_or("is not there")),
                      "sysctl -w kernel.yama.ptrace_scope=0; in a container allow process_vm_readv"});
}

}  // namespace

void examine_memory(Findings& findings) {
  try_shared_memory(findings);
  try_cross_memory(findings);
}

}  // namespace fairlead::tools
