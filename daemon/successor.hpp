#pragma once
// Executes the next version of the daemon in this process (docs/host.md). The new program is the file that is now at
// the path by which this one was started; it gets the same arguments, and that path as argv[0]. The state is passed in
// a sealed memfd. The descriptors that the state names stay open under the same numbers.
//
// Not thread-safe: the daemon's main thread calls it.

#include <sched.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "base/saved.hpp"
#include "base/time.hpp"
#include "daemon/program.hpp"

namespace fairlead::daemon {

/// A child process that runs the new program with `--rehearse`: it checks whether it could continue from the state.
class Rehearsal {
 public:
  /// The child's exit status on success. It is not 0, because another program could also exit with 0.
  static constexpr int kCouldGoOn = 97;

  Rehearsal(base::FileDescriptor process, base::FileDescriptor words, int id)
      : process_(std::move(process)),
        words_(std::move(words)),
        id_(id),
        until_(base::MonotonicClock::now() + kPatience) {}
  Rehearsal(Rehearsal&& other) noexcept;
  Rehearsal& operator=(Rehearsal&& other) noexcept;
  /// Kills the child if it still runs.
  ~Rehearsal();

  /// Returns whether the child has ended or kPatience has passed.
  bool is_over() const;
  /// Call once, when is_over(). Returns `refused` with the child's error output if it could not continue.
  Result<> result();

 private:
  static constexpr base::Duration kPatience = std::chrono::seconds(3);

  base::FileDescriptor process_, words_;  // pidfd; pipe from its standard error
  int id_ = 0;                            // process id; 0: none to reap
  base::Instant until_;
};

class Successor {
 public:
  static constexpr const char* kResume = "--resume";
  static constexpr const char* kRehearse = "--rehearse";

  Successor(int argc, char** argv);

  /// Opens the program that is at the path now.
  Result<Program> find() const { return Program::open(path_); }
  /// Starts the program as a child that checks `state`.
  Result<Rehearsal> rehearse(const Program& program, std::span<const std::byte> state) const;
  /// Executes the program with `state`. `descriptors` stay open. Returns only on failure, with nothing changed.
  Error take_over(const Program& program, std::span<const std::byte> state, std::span<const int> descriptors) const;

 private:
  std::vector<std::string> arguments_with(const char* option, int descriptor) const;

  std::string path_;
  std::vector<std::string> arguments_;
  cpu_set_t processors_{};  // on which this process was started
};

/// Reads the state that the previous program has left. Returns `invalid` if `file` is not a sealed memfd.
Result<base::SavedBytes> read_state(base::FileDescriptor file);

}  // namespace fairlead::daemon
