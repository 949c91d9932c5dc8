#pragma once
// The far side of a measurement: another process (udp), or another thread (self).

#include <fairlead/error.hpp>

#include <sys/types.h>

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "tools/perf_control.hpp"

namespace fairlead::tools {

/// Serves commands until the control is closed. First it tells its address.
Result<> serve_perf(PerfControl control, std::string_view address, int cpu);

/// Starts one, and ends it when it goes.
class PerfFar {
 public:
  /// `is_process`: this program once more, as `fairlead perf-far`; else a thread.
  static Result<std::unique_ptr<PerfFar>> start(std::string_view address, int cpu, bool is_process);
  PerfFar(const PerfFar&) = delete;
  PerfFar& operator=(const PerfFar&) = delete;
  ~PerfFar();

  const std::string& address() const { return address_; }

  /// Begins a role; false if the far side is gone.
  bool begin(const PerfCommand& command);
  std::optional<PerfOutcome> end();
  /// User and system time of the process so far; 0 if it is a thread of this one.
  double cpu_seconds() const;

 private:
  explicit PerfFar(PerfControl control) : control_(std::move(control)) {}

  std::optional<PerfControl> control_;
  std::string address_;
  pid_t process_ = -1;
  std::thread thread_;
};

}  // namespace fairlead::tools
