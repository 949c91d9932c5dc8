#pragma once
// The wake-up beside an event queue: the consumer sleeps, and producers make a system call only if it does (a
// doorbell).
//
// Why no wake-up is lost. The consumer announces its sleep (exchange sleeping := 1), polls once more, then sleeps. The
// producer publishes its event, then takes the announcement (exchange sleeping := 0). Every write to that word is a
// read-modify-write, so one of the two exchanges comes first. If the producer's is first, the consumer's exchange reads
// what it wrote (release), directly or through other exchanges. So the poll after it sees the event. If the consumer's
// is first, the producer reads the 1 and writes the event fd. The C++ memory model guarantees this. A plain load after
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

/// The flag shared by consumer and producers; it may lie in shared memory.
struct alignas(kLinePairBytes) SleepFlag {
  std::atomic<std::uint32_t> sleeping{0};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// Threads: notify() any thread; everything else only the thread that sleeps.
class Waiter {
 public:
  /// Makes a waiter with its own flag and event fd.
  static Result<Waiter> create();
  /// Uses a flag in shared memory and an event fd that the other process also has. Takes ownership of the descriptor.
  Waiter(SleepFlag& flag, base::FileDescriptor event_descriptor) noexcept
      : flag_(&flag), descriptor_(std::move(event_descriptor)) {}

  /// Call after publishing an event. Costs one exchange on a word that others rarely write, and a system call only if
  /// the consumer sleeps.
  void notify() noexcept {
    if (flag_->sleeping.exchange(0, std::memory_order_acq_rel) != 0) [[unlikely]]
      wake();
  }

  /// Call before sleeping (wait_ladder.hpp: when): the next notify() makes descriptor() readable. Returns false, with
  /// nothing armed, if is_ready() is true already: then do not sleep.
  template <std::predicate IsReady>
  bool arm(IsReady&& is_ready) {
    flag_->sleeping.exchange(1, std::memory_order_acq_rel);
    is_armed_ = true;
    if (!is_ready()) return true;
    disarm();
    return false;
  }
  /// Call after the sleep: descriptor() is not readable any more, and producers make no system call.
  void disarm() noexcept;
  int descriptor() const noexcept { return descriptor_.get(); }

 private:
  Waiter(std::unique_ptr<SleepFlag> flag, base::FileDescriptor event_descriptor) noexcept
      : own_flag_(std::move(flag)), flag_(own_flag_.get()), descriptor_(std::move(event_descriptor)) {}

  void wake() noexcept;

  std::unique_ptr<SleepFlag> own_flag_;
  SleepFlag* flag_;
  base::FileDescriptor descriptor_;
  bool is_armed_ = false;
  std::uint64_t owed_ = 0;  // writes of producers that took the announcement, and that nobody has read yet
};

}  // namespace fairlead::queue
