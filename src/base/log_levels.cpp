#include "base/log_levels.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/shown.hpp"

namespace fairlead::base {
namespace {

constexpr std::array<std::string_view, 5> kLevelNames{"off", "error", "warning", "info", "debug"};
constexpr std::array<std::string_view, kLogTopics> kTopicNames{"engine", "link", "shm", "seal", "verbs"};

std::optional<std::size_t> index_of(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace

Result<LogLevels> LogLevels::parse(std::string_view text) {
  LogLevels levels;
  for (std::size_t at = 0; !text.empty() && at <= text.size();) {
    const std::string_view word = text.substr(at, text.find(',', at) - at);
    at += word.size() + 1;
    const std::size_t equals = word.find('=');
    const bool is_for_all = equals == word.npos;
    const auto topic = index_of(kTopicNames, word.substr(0, is_for_all ? 0 : equals));
    const auto level = index_of(kLevelNames, word.substr(is_for_all ? 0 : equals + 1));
    if (!level || !(is_for_all || topic)) {
      return std::unexpected(
          Error{Status::invalid, 0,
                fmt::format("log '{}': want LEVEL or TOPIC=LEVEL, several with commas; levels: {}; "
                            "topics: {}",
                            shown(word), fmt::join(kLevelNames, ", "), fmt::join(kTopicNames, ", "))});
    }
    const auto wanted = static_cast<LogLevel>(*level);
    is_for_all ? levels.of_topic.fill(wanted) : void(levels.of_topic[*topic] = wanted);
  }
  return levels;
}

}  // namespace fairlead::base

namespace fairlead {

std::string_view to_string(LogLevel level) noexcept {
  return base::kLevelNames[static_cast<std::size_t>(level)];
}

std::string_view to_string(LogTopic topic) noexcept {
  return base::kTopicNames[static_cast<std::size_t>(topic)];
}

}  // namespace fairlead
