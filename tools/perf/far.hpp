#pragma once
// The far side of a measurement: another process (udp), or another thread (self).

#include <fairlead/error.hpp>

#include <sys/types.h>

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "tools/perf/control.hpp"

namespace fairlead::tools {

/// Sends its address, then serves commands until the control is closed.
Result<> serve_perf(PerfControl control, std::string_view address, int cpu);

/// Owns the far side: starts it, and ends it on destruction.
class PerfFar {
 public:
  /// `is_process` starts this program again, as `fairlead perf-far`; otherwise a thread is started.
  static Result<std::unique_ptr<PerfFar>> start(std::string_view address, int cpu, bool is_process);
  PerfFar(const PerfFar&) = delete;
  PerfFar& operator=(const PerfFar&) = delete;
  ~PerfFar();

  const std::string& address() const { return address_; }

  /// Starts a role. Returns false if the far side is gone.
  bool begin(const PerfCommand& command);
  std::optional<PerfOutcome> end();
  /// Returns the process's user and system time so far; 0 for a thread of this process.
  double cpu_seconds() const;

 private:
  explicit PerfFar(PerfControl control) : control_(std::move(control)) {}

  std::optional<PerfControl> control_;
  std::string address_;
  pid_t process_ = -1;
  std::thread thread_;
};

}  // namespace fairlead::tools
