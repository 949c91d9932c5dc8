#include "tools/process/cpu_time.hpp"

#include <ctime>

namespace fairlead::tools {

std::optional<Duration> cpu_time_of(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds{time.tv_sec} + Duration{time.tv_nsec};
}

}  // namespace fairlead::tools
