#include "queue/waiter.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/event_descriptor.hpp"

namespace fairlead::queue {

Result<Waiter> Waiter::create() {
  auto descriptor = base::open_event_descriptor("an event queue", EFD_NONBLOCK);
  if (!descriptor) return std::unexpected(std::move(descriptor.error()));
  return Waiter(std::make_unique<SleepFlag>(), std::move(*descriptor));
}

// The counter of an event fd can be full only if it is readable, so a failed write also wakes.
void Waiter::wake() noexcept {
  ::eventfd_write(descriptor_.get(), 1);
}

// Also an exchange: a plain store would hide the last notify() from the next announcement. If the announcement is still
// there, no producer writes, and there is nothing to read. A producer that took it may write later: then a later call
// reads it.
void Waiter::disarm() noexcept {
  if (std::exchange(is_armed_, false) && flag_->sleeping.exchange(0, std::memory_order_acq_rel) == 0) ++owed_;
  std::uint64_t wakes = 0;
  if (owed_ > 0 && read(descriptor_.get(), &wakes, sizeof wakes) == sizeof wakes) owed_ -= std::min(owed_, wakes);
}

}  // namespace fairlead::queue
