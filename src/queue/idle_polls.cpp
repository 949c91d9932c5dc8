#include "queue/idle_polls.hpp"

#include <utility>

namespace fairlead::queue {

IdlePolls::Step IdlePolls::next(base::Instant now) noexcept {
  const base::Duration took = now - std::exchange(asked_at_, now);
  return took > kInRow * kPollMost ? Step::look : ladder_.next(wait_, now);
}

}  // namespace fairlead::queue
