#pragma once
// A process that a test starts: its output is kept, its end is waited for, and it does not outlive the test.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace fairlead::tests {

class ChildProcess {
 public:
  /// `words`: program (looked for in PATH) and arguments. A program that is missing ends with code 127.
  explicit ChildProcess(const std::vector<std::string>& words);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// SIGKILL, if it still runs.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  void send_signal(int number) const;

  /// Waits for its end, at most `limit`; 128 + signal if it was killed, -1 if it still runs.
  int wait(std::chrono::milliseconds limit);
  /// Waits until `text` stands in the output or the error output; false if it ended or `limit` passed first.
  bool wait_for_text(const std::string& text, std::chrono::milliseconds limit);

  std::string output() const;
  std::string error_output() const;

 private:
  bool has_ended();

  pid_t pid_ = -1;
  int output_ = -1, error_output_ = -1;
  int exit_code_ = -1;
};

/// Runs to the end.
struct Finished {
  int exit_code = -1;
  std::string output, error_output;
};
Finished run(const std::vector<std::string>& words, std::chrono::milliseconds limit = std::chrono::seconds{60});

/// What the process, which need not be our child, has had of the processors; nothing if there is none.
std::optional<std::chrono::nanoseconds> cpu_time_of(pid_t process);
/// Waits until it has had that much: beyond its set-up, it does its work. False if it ended or `limit` passed first.
bool wait_until_busy(pid_t process, std::chrono::nanoseconds cpu_time, std::chrono::milliseconds limit);

/// A port that nobody has at the moment, neither as UDP on 127.0.0.1 nor as TCP. No other test gets it as long as this
/// process lives.
int free_port();
/// Whether somebody could have this one now.
bool can_bind(int port);

}  // namespace fairlead::tests
