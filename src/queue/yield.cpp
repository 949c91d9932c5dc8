#include "queue/yield.hpp"

#include <sched.h>

#include "base/short_slice.hpp"
#include "queue/wait_ladder.hpp"

namespace fairlead::queue {
namespace {

void ask_once_for_short_slice() noexcept {
  thread_local bool has_asked = false;
  if (has_asked) [[likely]]
    return;
  has_asked = true;
  base::ask_for_short_slice();
}

}  // namespace

base::Instant yield(base::Instant before) noexcept {
  ::sched_yield();
  const base::Instant after = base::MonotonicClock::now();
  if (after - before >= WaitLadder::kUseful) ask_once_for_short_slice();
  return after;
}

}  // namespace fairlead::queue
