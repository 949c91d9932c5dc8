#pragma once
// Messages that found no buffer. The engine only counts them, and ends a wait at the first; whoever looks after the
// machine tells how many they are, and looks again a little later.

#include <chrono>
#include <cstdint>
#include <utility>

#include <fairlead/time.hpp>

#include "engine/core.hpp"
#include "net/domain_state.hpp"

namespace fairlead::net {

class DropReport {
 public:
  /// When to look again, after some were told.
  Instant look_at() const { return look_at_; }
  /// Whether some are to be told now.
  bool is_due(engine::Core& core, engine::PortHandle port, const DomainState& domain) {
    if (look_at_ != kNever) {
      if (domain.time() < look_at_) return false;
      look_at_ = kNever;
      core.watch_drops(port);
    }
    return core.dropped_no_buffer(port) != count_;
  }
  /// How many, for all of some milliseconds.
  std::uint64_t take(engine::Core& core, engine::PortHandle port, const DomainState& domain) {
    if (!is_due(core, port, domain)) return 0;
    look_at_ = domain.time() + kEvery;
    const std::uint64_t before = std::exchange(count_, core.dropped_no_buffer(port));
    return count_ - before;
  }

 private:
  static constexpr Duration kEvery = std::chrono::milliseconds(5);

  std::uint64_t count_ = 0;  // as last told
  Instant look_at_ = kNever;
};

}  // namespace fairlead::net
