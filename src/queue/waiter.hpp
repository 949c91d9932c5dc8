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
#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "queue/layout.hpp"

namespace fairlead::queue {

/// The word between sleeper and producers; may lie in shared memory.
struct alignas(kLinePairBytes) SleepFlag {
  std::atomic<std::uint32_t> sleeping{0};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

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

  /// Before sleeping on it (wait_ladder.hpp: when): descriptor() becomes readable with the next notify(). False, and
  /// nothing is armed, if is_ready() already: do not sleep then.
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
  Waiter(std::unique_ptr<SleepFlag> flag, base::FileDescriptor event_descriptor) noexcept
      : own_flag_(std::move(flag)), flag_(own_flag_.get()), descriptor_(std::move(event_descriptor)) {}

  void wake() noexcept;

  std::unique_ptr<SleepFlag> own_flag_;
  SleepFlag* flag_;
  base::FileDescriptor descriptor_;
};

}  // namespace fairlead::queue
