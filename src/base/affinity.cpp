#include "base/affinity.hpp"

#include <sched.h>

namespace fairlead::base {

bool pin_to_cpu(int cpu) noexcept {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

}  // namespace fairlead::base
