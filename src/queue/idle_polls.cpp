#include "queue/idle_polls.hpp"

namespace fairlead::queue {

// Only the polls are timed, not what the thread did after the last row: it may have slept or found messages.
IdlePolls::Step IdlePolls::next(base::Instant now) noexcept {
  const bool is_row = row_.is_full();
  const bool is_busy = (is_row ? row_ : all_).is_busy(now);
  row_.polls = all_.polls = 0;
  if (is_busy) return Step::look;
  const Step step = ladder_.next(wait_, now);
  const bool wants_sleep = step == Step::sleep;
  set_rows(wants_sleep && is_row);
  return wants_sleep && !is_row ? Step::look : step;
}

void IdlePolls::yielded(base::Instant before, base::Instant after) noexcept {
  ladder_.yielded(wait_, before, after);
  const base::Duration took = after - before;
  if (took >= WaitLadder::kUseful && took <= WaitLadder::yield_most()) set_rows(true);
}

void IdlePolls::set_rows(bool is_beside_others) noexcept {
  row_.most = is_beside_others ? kInRowBesideOthers : kInRow;
  all_.most = is_beside_others ? kInRowBesideOthers : kInAll;
}

}  // namespace fairlead::queue
