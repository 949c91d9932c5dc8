#pragma once
// When a machine tells its figures next.

#include <fairlead/time.hpp>

namespace fairlead::net {

class StatisticsReport {
 public:
  void set(Duration every) { every_ = every; }
  void begin(Instant now) {
    if (every_ != Duration::zero()) next_ = now + every_;
  }
  Instant next() const { return next_; }
  /// Then the next one is planned.
  bool is_due(Instant now) {
    if (now < next_) return false;
    next_ = now + every_;
    return true;
  }

 private:
  Duration every_{};  // zero: never
  Instant next_ = kNever;
};

}  // namespace fairlead::net
