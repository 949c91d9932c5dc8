#pragma once
// Schedules a machine's periodic statistics report.

#include <fairlead/time.hpp>

namespace fairlead::net {

class StatisticsReport {
 public:
  void set(Duration every) { every_ = every; }
  void begin(Instant now) {
    if (every_ != Duration::zero()) next_ = now + every_;
  }
  Instant next() const { return next_; }
  /// Returns whether a report is due, and if so schedules the next one.
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
