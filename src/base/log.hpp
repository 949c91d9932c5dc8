#pragma once
// The log of this process (<fairlead/log.hpp>). Never on the way of a message: lines tell what happens rarely, and no
// lock of the library is held when one is written.

#include <string>
#include <string_view>
#include <vector>

#include <fairlead/log.hpp>

#include "base/log_levels.hpp"

namespace fairlead::base {

/// Whether such a line would be written, so that it need not be made else.
bool is_logged(LogLevel level, LogTopic topic) noexcept;

/// `engine`: its address, or empty. Of a text of several lines the first; the others at debug. Any thread.
void log(LogLevel level, LogTopic topic, std::string_view engine, std::string_view text) noexcept;

/// What settings ask for; the program's own call counts more.
void suggest_log_levels(const LogLevels& levels) noexcept;

/// A line, or more, for the log, as a lower layer leaves it for whoever writes.
struct LogNote {
  LogLevel level;
  LogTopic topic;
  std::string text;
};
std::string text_of(const std::vector<LogNote>& notes);

}  // namespace fairlead::base
