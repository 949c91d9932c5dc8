#pragma once
// Programs that a test starts, and what they use: processor time, ports.

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "tools/process/child_process.hpp"
#include "tools/process/cpu_time.hpp"

namespace fairlead::tests {

using tools::ChildProcess;
using tools::cpu_time_of;

/// Result of a program that has run to its end.
struct Finished {
  int exit_code = -1;
  std::string output, error_output;
};
Finished run(const std::vector<std::string>& words, std::chrono::milliseconds limit = std::chrono::seconds{60});

/// Waits until the process has used `cpu_time`, more than its set-up takes. False if it ends or `limit` passes first.
bool wait_until_busy(pid_t process, std::chrono::nanoseconds cpu_time, std::chrono::milliseconds limit);

/// A port that no process uses now, neither as UDP on 127.0.0.1 nor as TCP. No other test gets it while this process
/// lives.
int free_port();
/// Whether a UDP socket of 127.0.0.1 can be bound to the port now.
bool can_bind(int port);

/// Whether the process's network namespace has a listener on this TCP port, or a bound UDP socket (of a connection
/// manager).
bool listens(pid_t process, int port);
/// Whether this program is in the path.
bool is_installed(const std::string& program);

}  // namespace fairlead::tests
