#include "tools/perf/far_end.hpp"

#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "base/affinity.hpp"

namespace fairlead::tools {
namespace {

// Another host may fall silent. A second process of this host ends with the first one.
constexpr Duration kPlanWithin = std::chrono::seconds{5};
constexpr Duration kCommandWithin = std::chrono::minutes{1};

bool is_other_host(const PerfControl& control) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  return ::getsockname(control.descriptor(), reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
         own.ss_family != AF_UNIX;
}

Result<std::unique_ptr<PerfFarEnd>> open_end(const PerfPlace& place, const PerfPlan& plan) {
  switch (plan.kind) {
    case PerfKind::active:
      return open_far_active(place, plan);
    case PerfKind::verbs:
      return open_far_verbs(place, plan);
    case PerfKind::messages:
      break;
  }
  return open_far_messages(place);
}

/// The two sides' messages, from the greeting to the end.
class FarSession {
 public:
  FarSession(PerfControl control, const PerfPlace& place)
      : control_(std::move(control)), place_(place), is_remote_(is_other_host(control_)) {}

  Result<> serve() {
    if (!control_.send(perf_message(PerfGreeting{.release = FAIRLEAD_VERSION, .obstacle = {}}))) return {};
    const auto plan = take(parse_perf_plan, kPlanWithin);
    if (!plan) return told(plan.error());
    const auto end = open_end(place_, *plan);
    if (!end) return told(end.error());
    if (!control_.send(perf_message_at((*end)->at()))) return {};
    const auto near = take(parse_perf_at, kCommandWithin);
    if (!near) return told(near.error());
    if (auto met = (*end)->meet(*near); !met) return told(met.error());
    if (!control_.send(perf_message_ready())) return {};
    for (;;) {
      const auto command = take(parse_perf_command, kCommandWithin);
      if (!command) return told(command.error());
      const auto outcome = (*end)->play(*command, control_);
      if (!outcome) return told(outcome.error());
      const auto stop = control_.receive(kCommandWithin);
      if (!stop || !is_perf_stop(*stop) || !control_.send(perf_message(*outcome))) return {};
    }
  }

 private:
  template <typename Parse>
  auto take(Parse parse, Duration at_most) -> decltype(parse({})) {
    const auto message = control_.receive(is_remote_ ? at_most : PerfControl::kForEver);
    if (!message) return std::unexpected(message.error());
    return parse(*message);
  }

  /// Ends the session. The near side prints the error, unless it has left; a server does so as well.
  Result<> told(const Error& error) {
    (void)control_.send(perf_message_error(error));
    if (!is_remote_ || error.status == Status::unreachable) return {};
    return std::unexpected(error);
  }

  PerfControl control_;
  const PerfPlace& place_;
  bool is_remote_;
};

}  // namespace

Result<> serve_perf(PerfControl control, const PerfPlace& place) {
  if (place.cpu >= 0) (void)base::pin_to_cpu(place.cpu);
  return FarSession(std::move(control), place).serve();
}

}  // namespace fairlead::tools
