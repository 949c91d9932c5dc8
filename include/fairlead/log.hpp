#pragma once
// Log lines of the library. They go to standard error, or to a function of the program. By default only warnings and
// errors are logged. FAIRLEAD_LOG=info,link=debug selects levels by topic, as set_log_levels() does.

#include <cstdint>
#include <functional>
#include <string_view>

#include <fairlead/error.hpp>

namespace fairlead {

enum class LogLevel : std::uint8_t {
  off,
  error,    ///< the library cannot do what the program asked for
  warning,  ///< a setting, or this host, does not do what one would expect
  info,     ///< engines and peers that start or end, the path to each peer, stalls, losses
  debug,    ///< also the events that led to them
};

enum class LogTopic : std::uint8_t {
  engine,  ///< an engine as a whole, and its settings
  link,    ///< peers over UDP
  shm,     ///< peers of this host through shared memory
  seal,    ///< keys, and peers that were refused because they lack one
  verbs,   ///< RDMA devices of unmodified programs
};

/// "info", "link".
std::string_view to_string(LogLevel level) noexcept;
std::string_view to_string(LogTopic topic) noexcept;

/// A line, without its end. Valid during the call.
struct LogLine {
  LogLevel level;
  LogTopic topic;
  std::string_view engine;  ///< "10.0.0.5:20480"; empty if no engine is concerned
  std::string_view text;    ///< printable ASCII
};

/// Receives each line instead of standard error; an empty handler restores standard error. Any thread may call it, and
/// several threads may call it at the same time. The previous handler may still be running when set_log_handler()
/// returns. A handler may call only the functions of this header; the library discards its exceptions. Engines that end
/// late still call it. A child of fork() starts without a handler.
using LogHandler = std::function<void(const LogLine&)>;
void set_log_handler(LogHandler handler);

/// "LEVEL" applies to all topics, "TOPIC=LEVEL" to one. Separate several with commas; the last one wins. Topics that
/// are not named get the default level. From then on these levels override the environment and the setting `log`.
/// `invalid` names the word that is wrong. Any thread.
[[nodiscard]] Result<> set_log_levels(std::string_view levels);

}  // namespace fairlead
