#pragma once
// Which lines are wanted: a level for each topic.

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

  /// "info,link=debug", on top of the defaults. The error says what is wanted.
  static Result<LogLevels> parse(std::string_view text);
  bool operator==(const LogLevels&) const = default;
};

}  // namespace fairlead::base
