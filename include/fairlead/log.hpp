#pragma once
// What the library says while a program runs: on standard error, or to a function of the program. By default warnings
// and errors alone. FAIRLEAD_LOG=info,link=debug chooses by level and topic, as set_log_levels() does.

#include <cstdint>
#include <functional>
#include <string_view>

#include <fairlead/error.hpp>

namespace fairlead {

enum class LogLevel : std::uint8_t {
  off,
  error,    ///< what was asked for cannot be had
  warning,  ///< a setting, or this host, does not do what one would expect
  info,     ///< engines and peers that come and go, the path of each peer, stalls, losses
  debug,    ///< what led to them, too
};

enum class LogTopic : std::uint8_t {
  engine,  ///< an engine as a whole, and its settings
  link,    ///< peers over UDP
  shm,     ///< peers of this host through shared memory
  seal,    ///< keys, and who was refused for want of one
  verbs,   ///< RDMA devices of unmodified programs
};

/// "info", "link".
std::string_view to_string(LogLevel level) noexcept;
std::string_view to_string(LogTopic topic) noexcept;

/// A line, without its end. Valid during the call.
struct LogLine {
  LogLevel level;
  LogTopic topic;
  std::string_view engine;  ///< "10.0.0.5:20480"; empty if it is of none
  std::string_view text;    ///< printable ASCII
};

/// Takes each line instead of standard error; none: standard error again. Any thread calls it, also several at a time,
/// and the old one may still be running when this returns. It must not call the library, but for this header; what it
/// throws is lost. Engines that end late still call it. A child of fork() begins without.
using LogHandler = std::function<void(const LogLine&)>;
void set_log_handler(LogHandler handler);

/// "LEVEL" for all topics, "TOPIC=LEVEL" for one, several with commas, the later one wins; what is not named is as by
/// default. Counts more than the environment and the setting `log` from then on. `invalid` names the word. Any thread.
Result<> set_log_levels(std::string_view levels);

}  // namespace fairlead
