#pragma once
// Another program, started with its standard streams in memory. It ends with ours, however that ends.

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace fairlead::tools {

/// Its path: looked for where the user's programs are, and where the system's are. Empty if it is not there.
std::string find_program(std::string_view name);

class OutsideProgram {
 public:
  /// words[0] is a path, or a name as of find_program(). `cpu`: where it may run; negative: anywhere.
  static Result<OutsideProgram> start(const std::vector<std::string>& words, std::string_view input = {}, int cpu = -1);
  OutsideProgram(OutsideProgram&& other) noexcept;
  OutsideProgram& operator=(OutsideProgram&&) = delete;
  /// Kills it if it runs.
  ~OutsideProgram();

  /// Whether it ended in time.
  bool wait(Duration at_most);
  void kill();
  /// After its end: its exit code, 128 + the number of the signal that ended it.
  int exit_code() const { return exit_code_; }
  /// What it has printed so far, at most 1 MiB.
  std::string output() const;
  std::string error_output() const;

 private:
  OutsideProgram() = default;

  pid_t process_ = -1;
  int exit_code_ = -1;
  int output_ = -1, error_output_ = -1;
};

/// Runs one to its end; its output. Failure (exit code, or not done in time) is an error with the last line that it
/// said.
Result<std::string> run_program(const std::vector<std::string>& words, std::string_view input = {},
                                Duration at_most = std::chrono::seconds{20});

}  // namespace fairlead::tools
