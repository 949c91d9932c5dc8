#pragma once
// The wake-up beside the event queue: a consumer that sleeps, and producers that call the kernel only when it does.
//
// Why no wake-up is lost. The sleeper announces itself (exchange sleeping := 1), looks once more, then sleeps. The
// producer publishes its event, then takes the announcement (exchange sleeping := 0). Every write of that word is a
// read-modify-write, so one of the two comes first. The producer's first: the sleeper's exchange reads what it wrote, a
// release, directly or through further exchanges, so the look after it sees the event. The sleeper's first: the
// producer finds the 1 and writes the event fd. This holds in C++'s memory model by itself, where a plain load after
// the publication would need a full fence on both sides.

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "base/processor.hpp"
#include "base/time.hpp"
#include "queue/layout.hpp"

namespace fairlead::queue {

/// The word between sleeper and producers; may lie in shared memory.
struct alignas(kLinePairBytes) SleepFlag {
  std::atomic<std::uint32_t> sleeping{0};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// How long to look before sleeping. A wake-up costs both sides some 10 us, so looking that long loses nothing; yields
/// let a partner on the same processor run, but where a foreign program takes the processor they cost milliseconds.
struct Patience {
  base::Duration spin = std::chrono::microseconds{50};
  std::uint32_t yields_max = 16;
  base::Duration yield_slow = std::chrono::microseconds{100};  // one as long as this ends the yielding
};

/// notify() may come from any thread; everything else from the one that sleeps.
class Waiter {
 public:
  /// With a flag and an event fd of its own.
  static Result<Waiter> create();
  /// Over a flag in shared memory and an event fd that the other process has too; the descriptor becomes ours.
  Waiter(SleepFlag& flag, base::FileDescriptor event_descriptor) noexcept
      : flag_(&flag), descriptor_(std::move(event_descriptor)) {}

  /// After an event was published. One exchange on a word that is rarely written by anybody else; the system call only
  /// if somebody sleeps.
  void notify() noexcept {
    if (flag_->sleeping.exchange(0, std::memory_order_acq_rel) != 0) [[unlikely]]
      wake();
  }

  /// Waits until is_ready() or the deadline: looks, then yields, then sleeps. Returns is_ready().
  template <std::predicate IsReady>
  bool wait_until(base::Instant deadline, const Patience& patience, IsReady&& is_ready) {
    if (is_ready()) return true;
    const auto now = base::MonotonicClock::now();
    const auto spin_end = deadline - now < patience.spin ? deadline : now + patience.spin;
    if (spin(spin_end, is_ready) || yield(deadline, patience, is_ready)) return true;
    while (arm(is_ready)) {
      const bool is_in_time = sleep_until(deadline);
      disarm();
      if (is_ready()) return true;
      if (!is_in_time) return false;
    }
    return true;
  }

  /// For somebody else's epoll loop: descriptor() becomes readable with the next notify(). False, and nothing is
  /// armed, if is_ready() already: do not sleep then.
  template <std::predicate IsReady>
  bool arm(IsReady&& is_ready) {
    flag_->sleeping.exchange(1, std::memory_order_acq_rel);
    if (!is_ready()) return true;
    disarm();
    return false;
  }
  /// Back from sleep: the descriptor is not readable any more, producers save the system call.
  void disarm() noexcept;
  int descriptor() const noexcept { return descriptor_.get(); }

 private:
  static constexpr int kLooksPerClock = 16;

  Waiter(std::unique_ptr<SleepFlag> flag, base::FileDescriptor event_descriptor) noexcept
      : own_flag_(std::move(flag)), flag_(own_flag_.get()), descriptor_(std::move(event_descriptor)) {}

  template <typename IsReady>
  static bool spin(base::Instant until, IsReady& is_ready) {
    while (base::MonotonicClock::now() < until) {
      for (int i = 0; i < kLooksPerClock; ++i) {
        base::relax();
        if (is_ready()) return true;
      }
    }
    return false;
  }
  template <typename IsReady>
  static bool yield(base::Instant deadline, const Patience& patience, IsReady& is_ready) {
    auto before = base::MonotonicClock::now();
    for (std::uint32_t i = 0; i < patience.yields_max && before < deadline; ++i) {
      std::this_thread::yield();
      if (is_ready()) return true;
      const auto after = base::MonotonicClock::now();
      if (after - before >= patience.yield_slow) return false;
      before = after;
    }
    return false;
  }

  void wake() noexcept;
  bool sleep_until(base::Instant deadline) noexcept;

  std::unique_ptr<SleepFlag> own_flag_;
  SleepFlag* flag_;
  base::FileDescriptor descriptor_;
};

}  // namespace fairlead::queue
