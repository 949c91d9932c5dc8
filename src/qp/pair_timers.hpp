#pragma once
// The timers of queue pairs. A timer may be early, never late: a deadline that moves later does not change it.

#include <cstdint>
#include <optional>

#include <boost/intrusive/set.hpp>

#include "base/time.hpp"

namespace fairlead::qp {

struct PairTimer {
  boost::intrusive::set_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> hook;
  base::Instant at = base::kNever;
  std::uint32_t pair = 0;  // index

  bool operator<(const PairTimer& other) const { return at < other.at; }
};

class PairTimers {
 public:
  void set(PairTimer& timer, base::Instant at) {
    if (at == base::kNever || (timer.hook.is_linked() && timer.at <= at)) return;
    timer.hook.unlink();
    timer.at = at;
    timers_.insert(timer);
  }
  /// Returns the index of a queue pair whose timer has expired; nothing if there is none.
  std::optional<std::uint32_t> take(base::Instant now) {
    if (next() > now) return std::nullopt;
    PairTimer& first = *timers_.begin();
    first.hook.unlink();
    first.at = base::kNever;
    return first.pair;
  }
  /// Returns the earliest deadline; kNever if there is none.
  base::Instant next() const { return timers_.empty() ? base::kNever : timers_.begin()->at; }

 private:
  using Hook = boost::intrusive::member_hook<PairTimer, decltype(PairTimer::hook), &PairTimer::hook>;

  boost::intrusive::multiset<PairTimer, Hook, boost::intrusive::constant_time_size<false>> timers_;
};

}  // namespace fairlead::qp
