#pragma once
// The far side of a measurement, seen from the near side: another process of this host, another thread (path self), or
// a `fairlead perf --server`.

#include <fairlead/error.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/socket_address.hpp"
#include "tools/perf/control.hpp"
#include "tools/perf/far_process.hpp"
#include "tools/perf/protocol.hpp"

namespace fairlead::tools {

inline constexpr std::uint16_t kPerfPort = 20479;  // TCP, of `fairlead perf --server`

/// Owns the far side: starts it, and ends it on destruction.
class PerfFar {
 public:
  static Result<std::unique_ptr<PerfFar>> start_process(const PerfPlace& place);
  static Result<std::unique_ptr<PerfFar>> start_thread(const PerfPlace& place);
  /// Connects to a server. Waits at most 10 s.
  static Result<std::unique_ptr<PerfFar>> connect(const base::SocketAddress& server);
  PerfFar(const PerfFar&) = delete;
  PerfFar& operator=(const PerfFar&) = delete;
  ~PerfFar();

  /// Returns the address of this host that the far side reaches, without a port.
  const std::string& near_host() const { return near_host_; }

  /// Tells the plan. Returns what at() returns from now on.
  Result<std::string> open(const PerfPlan& plan);
  /// Tells where the near side is. Returns when the far side is ready for commands.
  Result<> meet(std::string_view near);
  const std::string& at() const { return at_; }

  /// Starts a role. Returns when it has begun.
  Result<> begin(const PerfCommand& command);
  Result<PerfOutcome> end();

  /// Returns whether the far side has ended or failed during a role. Makes a system call.
  bool has_news() const { return control_->is_readable(); }
  /// Returns why.
  Error news();
  /// Returns the process's user and system time so far. A far side on another host spins: the time that passes.
  double cpu_seconds() const;

 private:
  PerfFar(PerfControl control, std::string near_host)
      : control_(std::move(control)), near_host_(std::move(near_host)) {}
  /// Receives the greeting.
  Result<> greet(Duration at_most);
  Result<nlohmann::json> receive();

  std::optional<PerfControl> control_;
  std::string near_host_, at_;
  std::string server_;  // of another host, as users write it; empty: of this host
  std::optional<ChildProcess> process_;
  std::thread thread_;
};

}  // namespace fairlead::tools
