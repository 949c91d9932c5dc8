#include "base/affinity.hpp"

#include <sched.h>

namespace fairlead::base {
namespace {

thread_local cpu_set_t before_confinement;
thread_local bool is_confined = false;

}  // namespace

bool pin_to_cpu(int cpu) noexcept {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

bool confine_to_cpus(std::span<const unsigned> cpus) noexcept {
  cpu_set_t allowed;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  for (const unsigned cpu : cpus) {
    if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed)) return false;
    CPU_SET(cpu, &set);
  }
  if (sched_setaffinity(0, sizeof set, &set) != 0) return false;
  if (!is_confined) before_confinement = allowed;
  is_confined = true;
  return true;
}

const cpu_set_t* cpus_before_confinement() noexcept {
  return is_confined ? &before_confinement : nullptr;
}

}  // namespace fairlead::base
