#include "tools/base/live_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace fairlead::tools {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";

}  // namespace

bool LiveLine::is_terminal() {
  return isatty(STDERR_FILENO) == 1;
}

void LiveLine::show(std::string_view text, Instant now) {
  fmt::print(stderr, "{}{}", kEraseLine, text);
  std::fflush(stderr);
  is_dirty_ = true;
  due_ = now + std::chrono::milliseconds{250};
}

void LiveLine::clear() {
  if (!is_dirty_) return;
  fmt::print(stderr, "{}", kEraseLine);
  std::fflush(stderr);
  is_dirty_ = false;
}

}  // namespace fairlead::tools
