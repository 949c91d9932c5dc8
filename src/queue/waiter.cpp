#include "queue/waiter.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

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

// Also an exchange: a plain store would hide the last notify() from the next announcement.
void Waiter::disarm() noexcept {
  flag_->sleeping.exchange(0, std::memory_order_acq_rel);
  std::uint64_t wakes = 0;
  [[maybe_unused]] const auto taken = read(descriptor_.get(), &wakes, sizeof wakes);
}

}  // namespace fairlead::queue
