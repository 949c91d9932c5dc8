#pragma once
// What the two sides of a measurement tell each other over the control channel. One line for each message:
//
//     far    {"fairlead perf": 1, "release": "0.2.0"}     or with an "error"
//     near   the plan: what will be measured
//     far    {"at": its address}
//     near   {"at": its address}
//     far    {"ready": true}
//     near   the command: a role, a size
//     far    {"ready": true}
//     near   {"stop": true}
//     far    the outcome
//
// The last four repeat. Instead of each answer the far side may send {"error": a sentence}. All that comes from the
// other side is checked.

#include <fairlead/error.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace fairlead::tools {

inline constexpr std::uint64_t kPerfProtocol = 1;
inline constexpr std::uint64_t kPerfSizeMax = std::uint64_t{64} << 20;   // of a message or transfer
inline constexpr std::uint64_t kPerfMemoryMax = std::uint64_t{4} << 30;  // of all transfers in flight
inline constexpr std::uint32_t kPerfInFlightMax = 4096;
inline constexpr std::uint32_t kPerfDepthMax = 1024;

struct PerfGreeting {
  std::uint64_t protocol = kPerfProtocol;
  std::string release;
  std::string obstacle;  // why this far side does not measure; empty if it does
};

enum class PerfKind : std::uint8_t { messages, active, verbs };

enum class VerbsOp : std::uint8_t { send, write, read, fetch_add, compare_swap };
std::string_view name_of(VerbsOp op);

struct PerfPlan {
  PerfKind kind = PerfKind::messages;
  // Of active messages and queue pairs:
  std::uint64_t size_max = 8;
  std::uint32_t depth = 1;   // requests in flight
  bool is_unpacked = false;  // active messages are not packed
  VerbsOp op = VerbsOp::send;
  bool is_stream = false;  // of queue pairs: many requests at a time
};

enum class PerfRole : std::uint8_t {
  echo,      // returns every message
  take_put,  // exposes buffers and sends their descriptors
  take,      // receives messages
};

struct PerfCommand {
  PerfRole role = PerfRole::echo;  // for messages
  std::uint64_t size = 1;
  std::uint32_t in_flight = 0;
  bool is_checked = false;  // see stamp.hpp
  bool is_loan = false;     // of echo
};

/// The far side's answer when it has stopped.
struct PerfOutcome {
  std::uint64_t messages = 0;  // or transfers
  std::uint64_t bytes = 0;
  std::uint64_t dropped = 0;  // messages that found no receive buffer
  std::uint64_t failures = 0;
  std::uint64_t corrupt = 0;  // of checked messages: corrupted, stale or repeated
};

nlohmann::json perf_message(const PerfGreeting& greeting);
nlohmann::json perf_message(const PerfPlan& plan);
nlohmann::json perf_message(const PerfCommand& command);
nlohmann::json perf_message(const PerfOutcome& outcome);
nlohmann::json perf_message_at(std::string_view address);
nlohmann::json perf_message_ready();
nlohmann::json perf_message_stop();
nlohmann::json perf_message_error(const Error& error);

/// Each returns `invalid` for a message of another kind or with a value out of range. If the message is the other
/// side's error, the parsers of the far side's messages return that.
Result<PerfGreeting> parse_perf_greeting(const nlohmann::json& message);
Result<PerfPlan> parse_perf_plan(const nlohmann::json& message);  // also of another protocol: `not_supported`
Result<PerfCommand> parse_perf_command(const nlohmann::json& message);
Result<PerfOutcome> parse_perf_outcome(const nlohmann::json& message);
Result<std::string> parse_perf_at(const nlohmann::json& message);
Result<> parse_perf_ready(const nlohmann::json& message);
bool is_perf_stop(const nlohmann::json& message);

}  // namespace fairlead::tools
