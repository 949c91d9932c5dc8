#include "base/short_slice.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace fairlead::base {
namespace {

/// The kernel's struct in its first version; the kernel's header and that of the C library exclude each other.
struct SchedulerAttributes {
  std::uint32_t size = sizeof(SchedulerAttributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;  // ns
};
static_assert(sizeof(SchedulerAttributes) == 48);

}  // namespace

void ask_for_short_slice() noexcept {
  constexpr auto kShortest = 100'000U;  // ns: the kernel's minimum
  SchedulerAttributes attributes;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;  // the user has chosen another policy
  attributes.runtime = kShortest;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace fairlead::base
