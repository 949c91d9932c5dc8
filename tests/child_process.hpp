#pragma once
// A process that a test starts. The class keeps its output, and ends it with the test.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace fairlead::tests {

class ChildProcess {
 public:
  /// `words`: program (searched in PATH) and arguments. If the program is missing, the exit code is 127.
  explicit ChildProcess(const std::vector<std::string>& words);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Sends SIGKILL if the process still runs.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  void send_signal(int number) const;

  /// Waits at most `limit` for the process to end. Returns its exit code, 128 + signal if it was killed, -1 if it still
  /// runs.
  int wait(std::chrono::milliseconds limit);
  /// Waits until `text` is in the output or the error output. False if the process ends or `limit` passes first.
  bool wait_for_text(const std::string& text, std::chrono::milliseconds limit);

  std::string output() const;
  std::string error_output() const;

 private:
  bool has_ended();

  pid_t pid_ = -1;
  int output_ = -1, error_output_ = -1;
  int exit_code_ = -1;
};

/// Result of a program that has run to its end.
struct Finished {
  int exit_code = -1;
  std::string output, error_output;
};
Finished run(const std::vector<std::string>& words, std::chrono::milliseconds limit = std::chrono::seconds{60});

/// CPU time that a process, not only a child, has used; nothing if there is no such process.
std::optional<std::chrono::nanoseconds> cpu_time_of(pid_t process);
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
