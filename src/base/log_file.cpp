#include "base/log_file.hpp"

#include <unistd.h>

#include <utility>

#include <fmt/format.h>

#include "base/file_signals.hpp"
#include "base/folder.hpp"
#include "base/shown.hpp"

namespace fairlead::base {

LogFile::LogFile(LogFile&& other) noexcept
    : file_(std::move(other.file_)), is_standard_error_(other.is_standard_error_), lost_(other.lost_.load()) {}

Result<LogFile> LogFile::open(const std::string& where) {
  LogFile log;
  log.is_standard_error_ = where == "stderr";
  if (where.empty() || log.is_standard_error_) return log;
  auto file = open_to_append(where);
  if (!file) return std::unexpected(std::move(file.error()));
  log.file_ = std::move(*file);
  return log;
}

int LogFile::descriptor() const noexcept {
  return is_standard_error_ ? STDERR_FILENO : file_.get();
}

void LogFile::write(std::string_view text) noexcept try {
  if (descriptor() < 0) return;
  const std::uint64_t lost = lost_.exchange(0);
  std::string all = lost == 0 ? std::string() : fmt::format("({} reports before this found no room)\n", lost);
  all += shown_lines(text);
  if (write_now(descriptor(), all) != all.size()) lost_ += lost + 1;
} catch (...) {
  ++lost_;  // no memory for the text
}

void tell(std::string_view line) noexcept try { write_now(STDERR_FILENO, shown_lines(line) + "\n"); } catch (...) {
  write_now(STDERR_FILENO, "fairlead: no memory for a message\n");
}

}  // namespace fairlead::base
