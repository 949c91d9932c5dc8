#include "queue/waiter.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/event_descriptor.hpp"

namespace fairlead::queue {

Result<Waiter> Waiter::create() {
  auto descriptor = base::open_event_descriptor("an event queue", EFD_NONBLOCK);
  if (!descriptor) return std::unexpected(std::move(descriptor.error()));
  return Waiter(std::make_unique<SleepFlag>(), std::move(*descriptor));
}

// The counter of an event fd can only be full if it is readable already: a failed write is a wake-up too.
void Waiter::wake() noexcept {
  ::eventfd_write(descriptor_.get(), 1);
}

// An exchange here too: a plain store would hide the last notify() from the next announcement.
void Waiter::disarm() noexcept {
  flag_->sleeping.exchange(0, std::memory_order_acq_rel);
  std::uint64_t wakes = 0;
  [[maybe_unused]] const auto taken = read(descriptor_.get(), &wakes, sizeof wakes);
}

bool Waiter::sleep_until(base::Instant deadline) noexcept {
  pollfd events{descriptor_.get(), POLLIN, 0};
  if (deadline == base::kNever) return ppoll(&events, 1, nullptr, nullptr) >= 0 || errno == EINTR;
  const auto left = deadline - base::MonotonicClock::now();
  if (left <= base::Duration::zero()) return false;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec timeout{static_cast<std::time_t>(seconds.count()), (left - seconds).count()};
  return ppoll(&events, 1, &timeout, nullptr) != 0;
}

}  // namespace fairlead::queue
