#pragma once
// The far side of one measurement: an end of messages, active messages or queue pairs.

#include <fairlead/error.hpp>

#include <memory>
#include <string>
#include <string_view>

#include "tools/perf/control.hpp"
#include "tools/perf/place.hpp"
#include "tools/perf/protocol.hpp"

namespace fairlead::tools {

inline constexpr std::uint32_t kPollsPerControlLook = 4096;  // because each look is a system call

/// Polls until the control is readable.
template <typename Poll>
void serve_until_told(const PerfControl& control, Poll poll) {
  for (std::uint32_t polls = 0; polls % kPollsPerControlLook != 0 || !control.is_readable(); ++polls) poll();
}

class PerfFarEnd {
 public:
  virtual ~PerfFarEnd() = default;

  /// Returns what the near side must know to reach this end.
  virtual std::string at() const = 0;
  /// Takes the same of the near side.
  virtual Result<> meet(std::string_view near) = 0;
  /// Says that it is ready, and plays until the control is readable.
  virtual Result<PerfOutcome> play(const PerfCommand& command, PerfControl& control) = 0;
};

// Each opens its own engine.
Result<std::unique_ptr<PerfFarEnd>> open_far_messages(const PerfPlace& place);
Result<std::unique_ptr<PerfFarEnd>> open_far_active(const PerfPlace& place, const PerfPlan& plan);
Result<std::unique_ptr<PerfFarEnd>> open_far_verbs(const PerfPlace& place, const PerfPlan& plan);

/// Serves one measurement: greets, opens the end that the near side plans for, and plays until the control closes.
/// Returns why a measurement with another host ended early, unless the other side just left.
Result<> serve_perf(PerfControl control, const PerfPlace& place);

}  // namespace fairlead::tools
