// Progress and waiting of the engine of this process.

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <thread>
#include <utility>

#include "base/processor.hpp"
#include "base/short_slice.hpp"
#include "embedded/embedded_core.hpp"

namespace fairlead::embedded {
namespace {

// ppoll() until an absolute time; kNever sleeps for ever.
void poll_until(std::span<pollfd> descriptors, base::Instant deadline) {
  const auto left = std::max(deadline - base::MonotonicClock::now(), base::Duration::zero());
  const timespec time{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
  ::ppoll(descriptors.data(), descriptors.size(), deadline == base::kNever ? nullptr : &time, nullptr);
}

bool is_over(const engine::Port* port) {
  return port->has_news() || port->is_interrupted.load(std::memory_order_acquire);
}

}  // namespace

EmbeddedCore::~EmbeddedCore() {
  // Its lock may be held, its names and what it owes to peers are the parent's.
  if (mark_.is_inherited()) {
    base::keep_for_ever(std::shared_ptr<engine::Engine>(std::move(engine_)));
    return;
  }
  if (thread_.is_joinable()) {
    is_stopping_.store(true, std::memory_order_release);
    ::eventfd_write(kick_.get(), 1);
    thread_.join();
  }
  leave_everyone();
  take_leave();
}

void EmbeddedCore::take_leave() {
  linger();
  say_goodbye();
  const Locked lock(*this);
  engine_->farewell(base::MonotonicClock::now());
}

/// What is still on its way to peers has a moment to arrive.
void EmbeddedCore::linger() {
  constexpr auto kLingerMost = std::chrono::milliseconds(100);
  auto now = base::MonotonicClock::now();
  const auto is_owing = [&] {
    const Locked lock(*this);
    return engine_->is_owing();
  };
  for (const auto end = now + kLingerMost; is_owing() && now < end; now = base::MonotonicClock::now()) {
    if (!pass(now)) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

/// Until all peers know. Those that are there say so at once; it is said again, later and later, for it may be lost.
void EmbeddedCore::say_goodbye() {
  constexpr auto kFirst = std::chrono::microseconds(200), kMost = std::chrono::microseconds(25'600);
  for (auto pause = kFirst; pause <= kMost; pause *= 2) {
    auto now = base::MonotonicClock::now();
    {
      const Locked lock(*this);
      if (engine_->take_leave(now) == 0) return;
    }
    for (const auto again = now + pause; now < again; now = base::MonotonicClock::now()) {
      if (!pass(now)) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

bool EmbeddedCore::pass(base::Instant now) {
  if (wanted_.load(std::memory_order_relaxed) != 0) return false;
  std::unique_lock lock(mutex_, std::try_to_lock);
  return lock && pass(lock, pace_.asked(now));
}

bool EmbeddedCore::pass(std::unique_lock<base::ShortLock>& lock, base::Instant now) {
  return end_pass(lock, engine_->progress(now));
}

bool EmbeddedCore::end_pass(std::unique_lock<base::ShortLock>& lock, bool any) {
  engine_->ports().notify_touched();
  passes_.store(passes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (keyring_watch_ && keyring_watch_->is_due(engine_->now())) [[unlikely]]
    look_at_keys();
  if (engine_->has_report()) [[unlikely]] {
    const std::string report = engine_->take_report();
    lock.unlock();
    write_report(report);
  }
  return any;
}

// As pass(), for those who poll again and again: most look only at what peers of this host have written.
// progress(now) makes the pass itself.
template <typename Progress>
bool EmbeddedCore::look_by(Progress&& progress) {
  if (wanted_.load(std::memory_order_relaxed) != 0) return false;
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;
  const bool is_time_good = engine_->is_network_idle() && pace_.may_skip();
  if (is_time_good && was_in_vain_.load(std::memory_order_relaxed)) engine_->connections()->glance();
  const bool any = progress(is_time_good ? engine_->now() : pace_.asked(base::MonotonicClock::now()));
  was_in_vain_.store(!any, std::memory_order_relaxed);
  return end_pass(lock, any);
}

bool EmbeddedCore::look() {
  return look_by([&](base::Instant now) { return engine_->progress(now); });
}

bool EmbeddedCore::progress() {
  return engine_->path() != nullptr && look();
}

std::size_t EmbeddedCore::poll(engine::PortHandle handle, std::span<engine::Completion> to) {
  engine::Port& port = port_of(handle);
  if (engine_->path() == nullptr) return port.events->consume(to);
  std::size_t count = 0;
  bool has_passed = false;
  look_by([&](base::Instant now) {
    bool any = false;
    count = engine_->progress_into(port, to, now, any);
    has_passed = true;
    return any;
  });
  return has_passed ? count : port.events->consume(to);
}

// The engine's thread looks at the timers when it wakes; an earlier deadline has to wake it.
void EmbeddedCore::kick_if_later_than(base::Instant deadline) {
  const std::int64_t wanted = deadline.time_since_epoch().count();
  if (thread_sleeps_until_.load(std::memory_order_relaxed) <= wanted) [[likely]]
    return;
  // Once only: until the thread has woken, others need not.
  thread_sleeps_until_.store(wanted, std::memory_order_relaxed);
  ::eventfd_write(kick_.get(), 1);
}

// Some programs poll a little and then spin on memory that the peer writes: whoever leaves the work to them for a whole
// tick lets everything wait for it. When the thread finds work that nobody had taken, it is attentive until it has
// found none for a while: its ticks are short. It does not listen to the path meanwhile: each datagram would wake it,
// and take the processor from somebody who polls.
void EmbeddedCore::run() {
  constexpr base::Duration kAttentiveMin = std::chrono::milliseconds(2), kAttentiveMax = std::chrono::milliseconds(64);
  constexpr auto kAttentiveTick = std::chrono::microseconds(100);
  constexpr auto kCalm = std::chrono::seconds(1);         // not attentive for so long: the poller is relied on
  constexpr auto kSoon = std::chrono::milliseconds(100);  // attentive again: then for longer
  base::ask_for_short_slice();
  std::uint64_t passes_seen = 0, sleeps_seen = 0, drivers_seen = 0;
  base::Duration tick = kTickMin;
  base::Instant attentive_until = base::MonotonicClock::now();
  base::Duration attentive = kAttentiveMin;
  while (!is_stopping_.load(std::memory_order_acquire)) {
    const std::uint64_t passes = passes_.load(std::memory_order_relaxed);
    const auto now = base::MonotonicClock::now();
    if (passes != passes_seen) {
      // Somebody else drives: look again after a tick whether they still do. Until then nobody needs to kick for an
      // earlier deadline; if the driver leaves, a timer is late by a tick at most. Each look takes the processor from
      // somebody for some 10 us, so steady polling is looked at less often.
      passes_seen = passes;
      thread_sleeps_until_.store(kSomebodyDrives, std::memory_order_relaxed);
      std::array<pollfd, 1> kicked{{{kick_.get(), POLLIN, 0}}};
      const bool is_attentive = now < attentive_until;
      poll_until(kicked, now + (is_attentive ? kAttentiveTick : tick));
      const bool is_polled = tick >= kTickMax && rest_if_polled(sleeps_seen);
      if (!is_attentive) tick = std::min(2 * tick, is_polled && now - attentive_until >= kCalm ? kTickCalm : kTickMax);
    } else {
      tick = kTickMin;
      const std::uint64_t sleeps = sleeps_.load(std::memory_order_relaxed);
      const bool has_driver = sleeps != std::exchange(drivers_seen, sleeps);
      if (pass(now) && !has_driver && !has_sleeping_driver_.load(std::memory_order_relaxed)) {
        if (now - attentive_until >= kSoon) attentive = kAttentiveMin;
        if (now >= attentive_until) attentive = std::min(2 * attentive, kAttentiveMax);
        attentive_until = now + attentive;
      }
      passes_seen = passes_.load(std::memory_order_relaxed);
      base::Instant deadline;
      {
        std::unique_lock lock(mutex_);
        pace_.stop();
        if (!engine_->arm()) continue;
        deadline = engine_->next_deadline();
        if (!engine_->path()->set_watched(true)) deadline = std::min(deadline, now + kTickMin);
        thread_sleeps_until_.store(deadline.time_since_epoch().count(), std::memory_order_relaxed);
        is_thread_asleep_.store(true, std::memory_order_relaxed);
      }
      std::array<pollfd, 3> woken{{{kick_.get(), POLLIN, 0},
                                   {engine_->path()->descriptor(), POLLIN, 0},
                                   {engine_->shm_descriptor(), POLLIN, 0}}};
      poll_until(woken, deadline);
      std::unique_lock lock(mutex_);
      is_thread_asleep_.store(false, std::memory_order_relaxed);
      engine_->disarm();
    }
    eventfd_t ignored = 0;
    ::eventfd_read(kick_.get(), &ignored);
  }
}

// Somebody else drives. If nobody slept since the last look, they poll (true), and need not be woken by the path. Who
// waited for the lock here would be woken by them: another look, for what can wait for the next tick.
bool EmbeddedCore::rest_if_polled(std::uint64_t& sleeps_seen) {
  const std::uint64_t sleeps = sleeps_.load(std::memory_order_relaxed);
  if (sleeps != std::exchange(sleeps_seen, sleeps)) return false;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (has_sleeping_driver_.load(std::memory_order_acquire)) return false;
  if (lock && sleeps == sleeps_.load(std::memory_order_relaxed)) engine_->path()->set_watched(false);
  return true;
}

// Waiting of a port's consumer ---------------------------------------------------------------------------------------

bool EmbeddedCore::wait(engine::PortHandle handle, base::Instant deadline) {
  engine::Port* port = &port_of(handle);
  return wait_for(std::span(&port, 1), deadline);
}

bool EmbeddedCore::wait_any(std::span<const engine::PortHandle> handles, base::Instant deadline) {
  ENSURE(handles.size() <= kWaitPortsMax, "waits for {} ports", handles.size());
  std::array<engine::Port*, kWaitPortsMax> ports;
  std::ranges::transform(handles, ports.begin(), [this](engine::PortHandle handle) { return &port_of(handle); });
  return wait_for(std::span(ports).first(handles.size()), deadline);
}

bool EmbeddedCore::wait_for(std::span<engine::Port* const> ports, base::Instant deadline) {
  auto wait = ladder_.begin(base::MonotonicClock::now());
  while (!spin(ports, wait, deadline)) {
    const auto now = base::MonotonicClock::now();
    if (now >= deadline) break;
    sleep(ports, deadline);
    ladder_.slept(wait, base::MonotonicClock::now());
  }
  ladder_.end(wait, base::MonotonicClock::now());
  for (engine::Port* port : ports) port->is_interrupted.store(false, std::memory_order_relaxed);
  return std::ranges::any_of(ports, &engine::Port::has_news);
}

// Looks and makes progress, as long as the ladder says; true when the wait is over.
bool EmbeddedCore::spin(std::span<engine::Port* const> ports, queue::WaitLadder::Wait& wait, base::Instant deadline) {
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
    ::sched_yield();
    ladder_.yielded(wait, before, base::MonotonicClock::now());
  }
}

// Sleeps until notified, the deadline, or (one waiter of the engine) until a datagram or a timer needs a pass.
void EmbeddedCore::sleep(std::span<engine::Port* const> ports, base::Instant deadline) {
  std::array<pollfd, kWaitPortsMax + 2> woken;
  std::size_t armed = 0;
  while (armed < ports.size() && ports[armed]->waiter->arm([&] { return is_over(ports[armed]); })) {
    woken[armed] = {ports[armed]->waiter->descriptor(), POLLIN, 0};
    ++armed;
  }
  if (armed == ports.size()) {
    const bool drives = engine_->path() != nullptr && !has_sleeping_driver_.exchange(true, std::memory_order_acq_rel);
    std::size_t count = armed;
    if (drives) {
      woken[count++] = {engine_->path()->descriptor(), POLLIN, 0};
      woken[count++] = {engine_->shm_descriptor(), POLLIN, 0};
      Locked lock(*this);
      pace_.stop();
      sleeps_.store(sleeps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      deadline = engine_->arm() ? std::min(deadline, engine_->next_deadline()) : base::Instant{};
      if (!engine_->path()->set_watched(true)) deadline = std::min(deadline, base::MonotonicClock::now() + kTickMin);
    }
    poll_until(std::span(woken).first(count), deadline);
    if (drives) {
      rise();
      has_sleeping_driver_.store(false, std::memory_order_release);
    }
  }
  for (engine::Port* port : ports.first(armed)) port->waiter->disarm();
}

// Peers need not wake us any more. The engine's thread may sleep as well, and the wake-up may have been meant for both:
// it has to know that somebody else drives now, for it takes over again when they stop.
void EmbeddedCore::rise() {
  if (engine_->shm_descriptor() < 0) return;
  Locked lock(*this);
  engine_->disarm();
  if (is_thread_asleep_.load(std::memory_order_relaxed)) ::eventfd_write(kick_.get(), 1);
}

void EmbeddedCore::interrupt(engine::PortHandle handle) {
  engine::Port& port = port_of(handle);
  port.is_interrupted.store(true, std::memory_order_release);
  port.waiter->notify();
}

int EmbeddedCore::descriptor(engine::PortHandle handle) const {
  return port_of(handle).waiter->descriptor();
}

bool EmbeddedCore::arm_descriptor(engine::PortHandle handle) {
  engine::Port& port = port_of(handle);
  return port.waiter->arm([&] { return port.has_news(); });
}

}  // namespace fairlead::embedded
