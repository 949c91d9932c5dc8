#pragma once
// Submits the operations of one FlowPlan, whenever fewer than in_flight are pending and the gap has passed. Puts and
// gets need a descriptor. The target's application hands it over directly, without a simulated message. A flow
// remembers the last descriptor, which a restart makes stale.

#include <cstdint>
#include <vector>

#include "sim/application.hpp"
#include "sim/random.hpp"

namespace fairlead::sim {

class Flow {
 public:
  Flow(std::uint32_t number, const FlowPlan& plan, base::Instant begins, base::Duration time, std::uint64_t seed)
      : number_(number),
        plan_(plan),
        random_(seed),
        next_at_(begins + plan.start),
        stops_at_(begins + (plan.stop.count() != 0 ? plan.stop : time)) {}

  const FlowPlan& plan() const { return plan_; }

  /// Returns when to submit next; kNever while the flow is full or has stopped.
  base::Instant next_at() const {
    return in_flight_ >= plan_.in_flight || next_at_ >= stops_at_ ? base::kNever : next_at_;
  }
  /// Submits one operation. `to` may be null while that host is down.
  void submit(Application& from, Application* to, base::Instant now);
  /// Delays the flow because its source host is unavailable until then.
  void put_off(base::Instant until) { next_at_ = std::max(next_at_, until); }

  void ended(const Operation& operation);
  /// The source process was killed with all its operations.
  void all_gone() { in_flight_ = 0; }

  std::uint32_t in_flight() const { return in_flight_; }
  std::uint64_t ended_count() const { return ended_count_; }
  std::uint64_t bytes_ok() const { return bytes_ok_; }
  /// Times from submission to successful completion. Bounded: later ones are omitted.
  const std::vector<base::Duration>& latencies() const { return latencies_; }

 private:
  static constexpr std::size_t kLatenciesMax = 1u << 20;

  void submit_message(Application& from, std::uint64_t size, base::Instant now);
  void submit_transfer(OperationKind kind, Application& from, Application* to, std::uint64_t size, base::Instant now);
  bool take_descriptor(OperationKind kind, Application& to, std::uint64_t size, Application::Request& request,
                       base::Instant now);
  void count(Operation* operation, Application& from, base::Instant now);

  struct Descriptor {
    std::uint32_t port = 0;
    std::uint64_t epoch = 0, key = 0;
    std::uint64_t exposure = 0;  // its number
  };

  std::uint32_t number_;
  FlowPlan plan_;
  Random random_;
  base::Instant next_at_, stops_at_;
  std::uint32_t in_flight_ = 0;
  std::uint64_t ended_count_ = 0, bytes_ok_ = 0;
  std::vector<base::Duration> latencies_;
  Descriptor last_;
};

}  // namespace fairlead::sim
