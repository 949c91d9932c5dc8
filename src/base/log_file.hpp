#pragma once
// Where reports go that a person reads later: standard error, or a file that is appended to. What is written has no
// control characters, never waits for a reader and raises no signal; what finds no room is counted and told with the
// next.

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::base {

class LogFile {
 public:
  /// To nowhere.
  LogFile() = default;
  LogFile(LogFile&& other) noexcept;
  /// `where`: "stderr", a file (base/folder.hpp: open_to_append), or empty for nowhere.
  static Result<LogFile> open(const std::string& where);

  /// Any thread.
  void write(std::string_view text) noexcept;

 private:
  int descriptor() const noexcept;

  FileDescriptor file_;
  bool is_standard_error_ = false;
  std::atomic<std::uint64_t> lost_{0};  // since the last that was written
};

/// A line to standard error, likewise; lost if it finds no room.
void tell(std::string_view line) noexcept;

}  // namespace fairlead::base
