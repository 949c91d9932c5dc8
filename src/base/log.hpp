#pragma once
// The log of this process (<fairlead/log.hpp>). Not used on the data path: lines report rare events. No lock of the
// library is held while a line is written.

#include <string>
#include <string_view>
#include <vector>

#include <fairlead/log.hpp>

#include "base/log_levels.hpp"

namespace fairlead::base {

/// Returns whether such a line would be written. If not, the caller need not format it.
bool is_logged(LogLevel level, LogTopic topic) noexcept;

/// Writes to the log. `engine`: its address, or empty. The first line of a text has this level, the others are at
/// debug. Any thread.
void log(LogLevel level, LogTopic topic, std::string_view engine, std::string_view text) noexcept;

/// Sets the levels that the settings ask for; a call of the program has priority.
void suggest_log_levels(const LogLevels& levels) noexcept;

/// Text for the log that a lower layer leaves to its caller.
struct LogNote {
  LogLevel level;
  LogTopic topic;
  std::string text;
};
std::string text_of(const std::vector<LogNote>& notes);

}  // namespace fairlead::base
