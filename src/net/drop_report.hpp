#pragma once
// Reports messages that found no receive buffer. The engine only counts them, and ends a wait at the first one. The
// thread that serves the machine reports the count, and looks again a few milliseconds later.

#include <chrono>
#include <cstdint>
#include <utility>

#include <fairlead/time.hpp>

#include "engine/core.hpp"
#include "net/domain_state.hpp"

namespace fairlead::net {

class DropReport {
 public:
  /// Returns when to look again after a report.
  Instant look_at() const { return look_at_; }
  /// Returns whether drops must be reported now.
  bool is_due(engine::Core& core, engine::PortHandle port, const DomainState& domain) {
    if (look_at_ != kNever) {
      if (domain.time() < look_at_) return false;
      look_at_ = kNever;
      core.watch_drops(port);
    }
    return core.dropped_no_buffer(port) != count_;
  }
  /// Returns the drops since the last report, at most once per `kEvery`.
  std::uint64_t take(engine::Core& core, engine::PortHandle port, const DomainState& domain) {
    if (!is_due(core, port, domain)) return 0;
    look_at_ = domain.time() + kEvery;
    const std::uint64_t before = std::exchange(count_, core.dropped_no_buffer(port));
    return count_ - before;
  }

 private:
  static constexpr Duration kEvery = std::chrono::milliseconds(5);

  std::uint64_t count_ = 0;  // at the last report
  Instant look_at_ = kNever;
};

}  // namespace fairlead::net
