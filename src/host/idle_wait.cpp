#include "host/idle_wait.hpp"

#include "base/processor.hpp"
#include "queue/yield.hpp"

namespace fairlead::host {

bool IdleWait::has_to_sleep(base::Instant now) {
  using Step = queue::WaitLadder::Step;
  if (!wait_) wait_ = ladder_.begin(now);
  const Step step = ladder_.next(*wait_, now);
  if (step == Step::look) base::relax();
  if (step == Step::yield) {
    const auto before = base::MonotonicClock::now();
    ladder_.yielded(*wait_, before, queue::yield(before));
  }
  return step == Step::sleep;
}

bool IdleWait::sleep(const ServedEngines& engines, int calls, base::Instant deadline) {
  const bool has_work = sleep_.sleep(engines, calls, deadline);
  if (wait_) ladder_.slept(*wait_, base::MonotonicClock::now());
  return has_work;
}

void IdleWait::end(base::Instant now) {
  if (wait_) ladder_.end(*wait_, now);
  wait_.reset();
}

}  // namespace fairlead::host
