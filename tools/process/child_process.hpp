#pragma once
// A program that runs in a child process. It is killed when the thread that started it ends. Its standard streams are
// held in memory, or are those of this process.
//
// Not for what is no program of its own: `fairlead run` becomes the program, and a floor, the doctor's memory test and
// tests of fork() only fork. fairleadd and libamudp do not contain the tools, and start programs by themselves.

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.hpp"

namespace fairlead::tools {

struct ChildOptions {
  std::string_view input = {};  // on its standard input
  int cpu = -1;                 // its processor; negative: any
  int kept = -1;                // a descriptor that stays open in the program, under the same number
  bool is_captured = true;      // false: it has the standard streams of this process
};

class ChildProcess {
 public:
  /// words[0] is a path, or a name that is searched in PATH and then in the system's folders.
  explicit ChildProcess(const std::vector<std::string>& words, const ChildOptions& options = {});
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  /// Kills the process if it still runs.
  ~ChildProcess();

  /// Returns why the program was not started, or null. It then counts as ended, with exit code 127.
  const Error* obstacle() const { return obstacle_ ? &*obstacle_ : nullptr; }
  pid_t pid() const { return pid_; }
  /// Does nothing after the end.
  void send_signal(int number) const;
  void kill();

  /// Waits at most so long for its end. Returns its exit code, 128 + the signal that ended it, or -1 if it still runs.
  int wait(Duration at_most);
  /// Waits until `text` is in one of the outputs. Returns false if the process ends without it, or the time passes.
  bool wait_for_text(const std::string& text, Duration at_most);
  /// Returns the output so far, at most 16 MiB.
  std::string output() const;
  std::string error_output() const;

 private:
  bool has_ended();

  std::optional<Error> obstacle_;
  pid_t pid_ = -1;
  int exit_code_ = -1;
  base::FileDescriptor output_, error_output_;
};

/// Runs a program to its end and returns its output. A non-zero exit code or a timeout is an error, with the last line
/// that the program printed.
Result<std::string> run_program(const std::vector<std::string>& words, std::string_view input = {},
                                Duration at_most = std::chrono::seconds{20});

}  // namespace fairlead::tools
