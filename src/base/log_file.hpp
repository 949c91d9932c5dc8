#pragma once
// Destination of reports for people: standard error, or a file that is appended to. The text has no control characters;
// writing never waits for a reader, and raises no signal. Lines without room are counted, and the next line reports
// their number.

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::base {

class LogFile {
 public:
  /// Discards everything.
  LogFile() = default;
  LogFile(LogFile&& other) noexcept;
  /// `where`: "stderr", a file (base/folder.hpp: open_to_append), or empty to discard everything.
  static Result<LogFile> open(const std::string& where);

  /// Any thread.
  void write(std::string_view text) noexcept;

 private:
  int descriptor() const noexcept;

  FileDescriptor file_;
  bool is_standard_error_ = false;
  std::atomic<std::uint64_t> lost_{0};  // since the last line written
};

/// Writes a line to standard error in the same way; it is lost if there is no room.
void tell(std::string_view line) noexcept;

}  // namespace fairlead::base
