// Waiting for events of an engine of this process.

#include <sys/eventfd.h>

#include <algorithm>
#include <array>

#include "base/poll_until.hpp"
#include "base/processor.hpp"
#include "embedded/driver.hpp"
#include "queue/yield.hpp"

namespace fairlead::embedded {
namespace {

bool is_over(const engine::Port* port) {
  return port->has_news() || port->is_interrupted.load(std::memory_order_acquire);
}

}  // namespace

bool Driver::wait(std::span<engine::Port* const> ports, base::Instant deadline) {
  const auto began = base::MonotonicClock::now();
  auto wait = ladder_.begin(began);
  // If the wait may not poll, and the caller's last poll found nothing, it sleeps without another poll: what has
  // arrived meanwhile ends the sleep at once.
  const bool sleeps_now =
      was_in_vain_.load(std::memory_order_relaxed) && ladder_.next(wait, began) == queue::WaitLadder::Step::sleep;
  for (bool is_ended = !sleeps_now && spin(ports, wait, deadline); !is_ended; is_ended = spin(ports, wait, deadline)) {
    const auto now = base::MonotonicClock::now();
    if (now >= deadline) break;
    sleep(ports, deadline);
    ladder_.slept(wait, base::MonotonicClock::now());
  }
  ladder_.end(wait, base::MonotonicClock::now());
  for (engine::Port* port : ports) port->is_interrupted.store(false, std::memory_order_relaxed);
  return std::ranges::any_of(ports, &engine::Port::has_news);
}

// Polls and makes passes for as long as the ladder says. Returns true when the wait is over.
bool Driver::spin(std::span<engine::Port* const> ports, queue::WaitLadder::Wait& wait, base::Instant deadline) {
  using Step = queue::WaitLadder::Step;
  const bool has_path = engine_->path() != nullptr;
  for (;;) {
    if (std::ranges::any_of(ports, is_over)) return true;
    const auto now = base::MonotonicClock::now();
    if (has_path && pass(now)) {
      ladder_.stirred(wait, now);
      if (std::ranges::any_of(ports, is_over)) return true;  // before a yield, which may take long
    }
    const Step step = now >= deadline ? Step::sleep : ladder_.next(wait, now);
    if (step == Step::sleep) return std::ranges::any_of(ports, is_over);
    if (step == Step::look) {
      base::relax();
      continue;
    }
    const auto before = base::MonotonicClock::now();
    ladder_.yielded(wait, before, queue::yield(before));
  }
}

void Driver::yield_or_sleep() {
  is_way_due_.store(false, std::memory_order_relaxed);
  const auto before = base::MonotonicClock::now();
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  const auto step = idle_polls_.next(before);
  lock.unlock();
  if (step == queue::WaitLadder::Step::look) return;
  if (step == queue::WaitLadder::Step::sleep) return sleep({}, before + queue::IdlePolls::kSleepMost);
  const auto after = queue::yield(before);
  if (lock.try_lock()) idle_polls_.yielded(before, after);
}

// Sleeps until a port is notified, or until `deadline`. One waiter of the engine also wakes when a datagram or a timer
// needs a pass.
void Driver::sleep(std::span<engine::Port* const> ports, base::Instant deadline) {
  std::array<pollfd, kWaitPortsMax + 3> woken;
  std::size_t armed = 0;
  while (armed < ports.size() && ports[armed]->waiter->arm([&] { return is_over(ports[armed]); })) {
    woken[armed] = {ports[armed]->waiter->descriptor(), POLLIN, 0};
    ++armed;
  }
  if (armed == ports.size()) {
    if (lie_down(deadline)) {
      std::size_t count = armed;
      for (const int descriptor : descriptors()) woken[count++] = {descriptor, POLLIN, 0};
      timer_.sleep(std::span(woken).first(count + 1), deadline);
      get_up();
    } else {
      base::poll_until(std::span(woken).first(armed), deadline);
    }
  }
  for (engine::Port* port : ports.first(armed)) port->waiter->disarm();
}

bool Driver::lie_down(base::Instant& deadline) {
  if (engine_->path() == nullptr || has_sleeping_driver_.exchange(true, std::memory_order_acq_rel)) return false;
  const Locked lock(*this);
  pace_.stop();
  sleeps_.store(sleeps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  deadline = engine_->arm() ? std::min(deadline, engine_->next_deadline()) : base::Instant{};
  if (!engine_->path()->set_watched(true)) deadline = std::min(deadline, base::MonotonicClock::now() + kTickMin);
  return true;
}

// Disarms the doorbell: peers need not ring it any more. The engine's thread may sleep as well, and the ring may have
// been for both. It has to know that another thread drives now, because it takes over when that thread stops.
void Driver::get_up() {
  if (shm_descriptor(*engine_) >= 0) {
    const Locked lock(*this);
    engine_->disarm();
    if (is_thread_asleep_.load(std::memory_order_relaxed)) ::eventfd_write(kick_.get(), 1);
  }
  has_sleeping_driver_.store(false, std::memory_order_release);
}

}  // namespace fairlead::embedded
