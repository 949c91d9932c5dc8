#pragma once
// The program that goes on in this process (docs/host.md): the one that lies where this one lay when it started, with
// the same arguments. It gets the state in a sealed piece of memory, and takes what else is open under the same
// numbers.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "base/time.hpp"

namespace fairlead::daemon {

/// A child that reads the state and looks whether it could go on with it.
class Rehearsal {
 public:
  /// What the child ends with if it could go on: a program that knows nothing of a state ends with 0 as well.
  static constexpr int kCouldGoOn = 97;

  Rehearsal(base::FileDescriptor process, base::FileDescriptor words, int id)
      : process_(std::move(process)),
        words_(std::move(words)),
        id_(id),
        until_(base::MonotonicClock::now() + kPatience) {}
  Rehearsal(Rehearsal&& other) noexcept;
  Rehearsal& operator=(Rehearsal&& other) noexcept;
  /// A child that has not ended is killed.
  ~Rehearsal();

  /// It has ended, or taken too long.
  bool is_over() const;
  /// Once, when it is over: what it has said if it could not.
  Result<> result();

 private:
  static constexpr base::Duration kPatience = std::chrono::seconds(3);

  base::FileDescriptor process_, words_;  // what it writes to its error output
  int id_ = 0;
  base::Instant until_;
};

class Successor {
 public:
  static constexpr const char* kResume = "--resume";
  static constexpr const char* kRehearse = "--rehearse";

  Successor(int argc, char** argv);

  Result<Rehearsal> rehearse(std::span<const std::byte> state) const;
  /// Returns only if it could not; then all is as before.
  Error take_over(std::span<const std::byte> state, std::span<const int> descriptors) const;

 private:
  std::vector<std::string> arguments_with(const char* option, int descriptor) const;

  std::string program_;
  std::vector<std::string> arguments_;
};

/// What the program before this one has left.
Result<std::vector<std::byte>> read_state(base::FileDescriptor file);

}  // namespace fairlead::daemon
