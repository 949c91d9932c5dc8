#include "tools/perf/protocol.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "base/shown.hpp"

namespace fairlead::tools {
namespace {

constexpr const char* kGreetingKey = "fairlead perf";
constexpr std::size_t kTextMax = 1024;  // bytes
constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
constexpr std::array<std::string_view, 3> kKinds{"messages", "active messages", "queue pairs"};
constexpr std::array<std::string_view, 3> kRoles{"echo", "take put", "take"};
constexpr std::array<std::string_view, 5> kVerbsOps{"send", "write", "read", "fetch_add", "compare_swap"};

/// Reads the fields of a message, and remembers the first one that is missing or out of range.
class FieldReader {
 public:
  explicit FieldReader(const nlohmann::json& message) : message_(message) {}

  std::uint64_t number(const char* name, std::uint64_t least, std::uint64_t most) {
    const nlohmann::json* const field = find(name);
    if (field != nullptr && field->is_number_unsigned()) {
      const auto value = field->get<std::uint64_t>();
      if (value >= least && value <= most) return value;
    }
    refuse(name);
    return least;
  }
  bool flag(const char* name) {
    const nlohmann::json* const field = find(name);
    if (field != nullptr && field->is_boolean()) return field->get<bool>();
    refuse(name);
    return false;
  }
  std::string text(const char* name) {
    const nlohmann::json* const field = find(name);
    if (field != nullptr && field->is_string()) {
      const auto& value = field->get_ref<const std::string&>();
      if (value.size() <= kTextMax) return value;
    }
    refuse(name);
    return {};
  }
  template <typename Enum>
  Enum word(const char* name, std::span<const std::string_view> words) {
    const std::string value = text(name);
    const auto found = std::ranges::find(words, value);
    if (found != words.end()) return static_cast<Enum>(found - words.begin());
    refuse(name);
    return Enum{};
  }

  void refuse(const char* name) {
    if (bad_.empty()) bad_ = name;
  }
  bool is_good() const { return bad_.empty(); }
  std::unexpected<Error> error() const {
    return std::unexpected(Error{Status::invalid, 0, fmt::format("the other side sent no valid '{}'", bad_)});
  }

 private:
  const nlohmann::json* find(const char* name) const {
    const auto found = message_.find(name);
    return found == message_.end() ? nullptr : &*found;
  }

  const nlohmann::json& message_;
  std::string bad_;
};

/// Returns the error that the far side sent instead of an answer, or nothing.
Result<> no_error_in(const nlohmann::json& message) {
  const auto found = message.find("error");
  if (found == message.end()) return {};
  const std::string said = found->is_string() ? found->get<std::string>() : "no reason";
  return std::unexpected(Error{Status::system, 0, fmt::format("the other side: {}", base::shown(said, kTextMax))});
}

}  // namespace

std::string_view name_of(VerbsOp op) {
  return kVerbsOps[static_cast<std::size_t>(op)];
}

nlohmann::json perf_message(const PerfGreeting& greeting) {
  nlohmann::json message{{kGreetingKey, greeting.protocol}, {"release", greeting.release}};
  if (!greeting.obstacle.empty()) message["error"] = greeting.obstacle;
  return message;
}

nlohmann::json perf_message(const PerfPlan& plan) {
  return nlohmann::json::object({{"protocol", kPerfProtocol},
                                 {"measure", kKinds[static_cast<std::size_t>(plan.kind)]},
                                 {"size_max", plan.size_max},
                                 {"depth", plan.depth},
                                 {"unpacked", plan.is_unpacked},
                                 {"op", name_of(plan.op)},
                                 {"stream", plan.is_stream}});
}

nlohmann::json perf_message(const PerfCommand& command) {
  return nlohmann::json::object({{"begin", kRoles[static_cast<std::size_t>(command.role)]},
                                 {"size", command.size},
                                 {"in_flight", command.in_flight},
                                 {"checked", command.is_checked},
                                 {"loan", command.is_loan}});
}

nlohmann::json perf_message(const PerfOutcome& outcome) {
  return nlohmann::json::object({{"messages", outcome.messages},
                                 {"bytes", outcome.bytes},
                                 {"dropped", outcome.dropped},
                                 {"failures", outcome.failures},
                                 {"corrupt", outcome.corrupt}});
}

nlohmann::json perf_message_at(std::string_view address) {
  return nlohmann::json::object({{"at", address}});
}

nlohmann::json perf_message_ready() {
  return nlohmann::json::object({{"ready", true}});
}

nlohmann::json perf_message_stop() {
  return nlohmann::json::object({{"stop", true}});
}

nlohmann::json perf_message_error(const Error& error) {
  return nlohmann::json::object({{"error", error.message.substr(0, kTextMax)}});
}

Result<PerfGreeting> parse_perf_greeting(const nlohmann::json& message) {
  FieldReader fields(message);
  PerfGreeting greeting;
  greeting.protocol = fields.number(kGreetingKey, 0, kAny);
  greeting.release = fields.text("release");
  if (message.contains("error")) greeting.obstacle = fields.text("error");
  if (!fields.is_good()) return fields.error();
  return greeting;
}

Result<PerfPlan> parse_perf_plan(const nlohmann::json& message) {
  FieldReader fields(message);
  const std::uint64_t protocol = fields.number("protocol", 0, kAny);
  if (fields.is_good() && protocol != kPerfProtocol) {
    return std::unexpected(
        Error{Status::not_supported, 0,
              fmt::format("this side (release {}) measures by protocol {}, and not by {}: use the same release at both "
                          "ends",
                          FAIRLEAD_VERSION, kPerfProtocol, protocol)});
  }
  const PerfPlan plan{.kind = fields.word<PerfKind>("measure", kKinds),
                      .size_max = fields.number("size_max", 1, kPerfSizeMax),
                      .depth = static_cast<std::uint32_t>(fields.number("depth", 1, kPerfDepthMax)),
                      .is_unpacked = fields.flag("unpacked"),
                      .op = fields.word<VerbsOp>("op", kVerbsOps),
                      .is_stream = fields.flag("stream")};
  if (!fields.is_good()) return fields.error();
  return plan;
}

Result<PerfCommand> parse_perf_command(const nlohmann::json& message) {
  FieldReader fields(message);
  const PerfCommand command{.role = fields.word<PerfRole>("begin", kRoles),
                            .size = fields.number("size", 1, kPerfSizeMax),
                            .in_flight = static_cast<std::uint32_t>(fields.number("in_flight", 0, kPerfInFlightMax)),
                            .is_checked = fields.flag("checked"),
                            .is_loan = fields.flag("loan")};
  if (command.size * command.in_flight > kPerfMemoryMax) fields.refuse("in_flight");
  if (!fields.is_good()) return fields.error();
  return command;
}

Result<PerfOutcome> parse_perf_outcome(const nlohmann::json& message) {
  if (auto fine = no_error_in(message); !fine) return std::unexpected(std::move(fine.error()));
  FieldReader fields(message);
  const PerfOutcome outcome{.messages = fields.number("messages", 0, kAny),
                            .bytes = fields.number("bytes", 0, kAny),
                            .dropped = fields.number("dropped", 0, kAny),
                            .failures = fields.number("failures", 0, kAny),
                            .corrupt = fields.number("corrupt", 0, kAny)};
  if (!fields.is_good()) return fields.error();
  return outcome;
}

Result<std::string> parse_perf_at(const nlohmann::json& message) {
  if (auto fine = no_error_in(message); !fine) return std::unexpected(std::move(fine.error()));
  FieldReader fields(message);
  std::string address = fields.text("at");
  if (!fields.is_good()) return fields.error();
  return address;
}

Result<> parse_perf_ready(const nlohmann::json& message) {
  if (auto fine = no_error_in(message); !fine) return fine;
  FieldReader fields(message);
  (void)fields.flag("ready");
  if (!fields.is_good()) return fields.error();
  return {};
}

bool is_perf_stop(const nlohmann::json& message) {
  return message.contains("stop");
}

}  // namespace fairlead::tools
