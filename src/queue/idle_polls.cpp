#include "queue/idle_polls.hpp"

namespace fairlead::queue {

// Only the polls are timed, not what the thread did after the last row: it may have slept or found messages.
IdlePolls::Step IdlePolls::next(base::Instant now) noexcept {
  const base::Duration took = now - timed_from_;
  const bool is_busy = took > (row_ - row_ / 2) * kPollMost;
  const Step step = is_busy ? Step::look : ladder_.next(wait_, now);
  in_row_ = 0;
  row_ = step == Step::sleep ? kInRowBesideOthers : kInRow;
  return step;
}

}  // namespace fairlead::queue
