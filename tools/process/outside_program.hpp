#pragma once
// A child process whose standard streams are held in memory. It ends with this process, however that ends.

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace fairlead::tools {

/// Returns the program's path, from the user's PATH and the system's directories. Empty if it is not found.
std::string find_program(std::string_view name);

class OutsideProgram {
 public:
  /// words[0] is a path, or a name as for find_program(). `cpu` selects the processor; negative: any.
  static Result<OutsideProgram> start(const std::vector<std::string>& words, std::string_view input = {}, int cpu = -1);
  OutsideProgram(OutsideProgram&& other) noexcept;
  OutsideProgram& operator=(OutsideProgram&&) = delete;
  /// Kills the process if it still runs.
  ~OutsideProgram();

  /// Returns whether it ended in time.
  bool wait(Duration at_most);
  void kill();
  /// After its end: its exit code, or 128 + the number of the signal that ended it.
  int exit_code() const { return exit_code_; }
  /// Returns its output so far, at most 1 MiB.
  std::string output() const;
  std::string error_output() const;

 private:
  OutsideProgram() = default;

  pid_t process_ = -1;
  int exit_code_ = -1;
  int output_ = -1, error_output_ = -1;
};

/// Runs a program to its end and returns its output. A non-zero exit code or a timeout is an error, with the last line
/// that the program printed.
Result<std::string> run_program(const std::vector<std::string>& words, std::string_view input = {},
                                Duration at_most = std::chrono::seconds{20});

}  // namespace fairlead::tools
