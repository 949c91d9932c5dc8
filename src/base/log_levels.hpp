#pragma once
// Which log lines are wanted: a level per topic.

#include <array>
#include <cstddef>
#include <string_view>

#include <fairlead/error.hpp>
#include <fairlead/log.hpp>

namespace fairlead::base {

inline constexpr std::size_t kLogTopics = 5;

struct LogLevels {
  std::array<LogLevel, kLogTopics> of_topic{LogLevel::warning, LogLevel::warning, LogLevel::warning, LogLevel::warning,
                                            LogLevel::warning};

  /// Parses "info,link=debug", on top of the defaults. The error describes the right form.
  static Result<LogLevels> parse(std::string_view text);
  bool operator==(const LogLevels&) const = default;
};

}  // namespace fairlead::base
