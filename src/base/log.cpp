#include "base/log.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/log_budget.hpp"
#include "base/log_file.hpp"
#include "base/process_mark.hpp"
#include "base/shown.hpp"

namespace fairlead::base {
namespace {

/// The levels from the environment; the engine's settings report errors in it.
LogLevels levels_of_environment() {
  const char* const text = environment("FAIRLEAD_LOG");
  return text == nullptr ? LogLevels() : LogLevels::parse(text).value_or(LogLevels());
}

class ProcessLog {
 public:
  ProcessLog() { set(levels_of_environment()); }
  bool is_logged(LogLevel level, LogTopic topic) const noexcept {
    return level <= levels_[static_cast<std::size_t>(topic)].load(std::memory_order_relaxed);
  }
  void choose(const LogLevels& levels, bool is_programs) noexcept {
    const std::scoped_lock lock(mutex_);
    if (has_chosen_ && !is_programs) return;
    has_chosen_ |= is_programs;
    set(levels);
  }
  /// Returns the previous handler; the caller destroys it without the lock, since it is the program's and may call
  /// anything.
  [[nodiscard]] std::shared_ptr<const LogHandler> exchange_handler(std::shared_ptr<const LogHandler> handler) noexcept {
    const std::scoped_lock lock(mutex_);
    return std::exchange(handler_, std::move(handler));
  }
  void lose() noexcept {
    const std::scoped_lock lock(mutex_);
    budget_.lose();
  }
  void write(const LogLine& line) {
    std::uint64_t left_out = 0;
    std::shared_ptr<const LogHandler> handler;
    {
      const std::scoped_lock lock(mutex_);
      if (!budget_.take(MonotonicClock::now())) return;
      left_out = budget_.take_left_out();
      handler = handler_;
    }
    if (left_out != 0) {
      hand_over(handler,
                {.level = LogLevel::warning,
                 .topic = line.topic,
                 .engine = {},
                 .text = fmt::format("{} lines before this were lost: too many at once, or the log handler failed",
                                     left_out)});
    }
    hand_over(handler, line);
  }

 private:
  void set(const LogLevels& levels) noexcept {
    for (std::size_t i = 0; i < kLogTopics; ++i) levels_[i].store(levels.of_topic[i], std::memory_order_relaxed);
  }
  static void hand_over(const std::shared_ptr<const LogHandler>& handler, const LogLine& line) {
    if (handler) return (*handler)(line);
    tell(line.engine.empty() ? fmt::format("fairlead: {}", line.text)
                             : fmt::format("fairlead at {}: {}", line.engine, line.text));
  }

  std::array<std::atomic<LogLevel>, kLogTopics> levels_;
  std::mutex mutex_;
  bool has_chosen_ = false;
  LogBudget budget_;
  std::shared_ptr<const LogHandler> handler_;
};

constinit OfProcess<ProcessLog> process_log;

}  // namespace

bool is_logged(LogLevel level, LogTopic topic) noexcept {
  return process_log->is_logged(level, topic);
}

void log(LogLevel level, LogTopic topic, std::string_view engine, std::string_view text) noexcept try {
  for (LogLevel at = level; !text.empty() && is_logged(at, topic); at = LogLevel::debug) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line = shown_lines(text.substr(0, end));
    process_log->write({.level = at, .topic = topic, .engine = engine, .text = line});
    text.remove_prefix(std::min(text.size(), end + 1));
  }
} catch (...) {
  process_log->lose();  // no memory for the line, or the program's handler has thrown
}

void suggest_log_levels(const LogLevels& levels) noexcept {
  process_log->choose(levels, false);
}

std::string text_of(const std::vector<LogNote>& notes) {
  std::string all;
  for (const LogNote& note : notes) all += note.text;
  return all;
}

}  // namespace fairlead::base

namespace fairlead {

void set_log_handler(LogHandler handler) {
  const auto before =
      base::process_log->exchange_handler(handler ? std::make_shared<const LogHandler>(std::move(handler)) : nullptr);
}

Result<> set_log_levels(std::string_view levels) {
  const auto parsed = base::LogLevels::parse(levels);
  if (!parsed) return std::unexpected(parsed.error());
  base::process_log->choose(*parsed, true);
  return {};
}

}  // namespace fairlead
