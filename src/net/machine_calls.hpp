#pragma once
// Synchronous delivery: the machine has no event thread, so the application's calls serve it. Each call does its own
// work first, then the event thread's: deadlines, reports, statistics, the last step of a stop.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include "base/short_lock.hpp"
#include "net/timed_descriptor.hpp"

namespace fairlead::net {

class Machine;

/// The machine's lock guards its state.
class MachineCalls {
 public:
  explicit MachineCalls(Machine& machine) : machine_(machine) {}
  MachineCalls(const MachineCalls&) = delete;
  MachineCalls& operator=(const MachineCalls&) = delete;

  std::expected<std::size_t, Status> deliver_all(std::size_t budget);
  bool pending();
  std::expected<bool, Status> wait(Instant deadline);
  Status notify(std::function<void()> signal);
  std::expected<bool, Status> arm();
  int descriptor();

  using Lock = std::unique_lock<base::ShortLock>;
  /// Returns when the machine has ended and no thread calls back. Ends the machine itself if no other thread does.
  void drive_to_end(Lock& lock);
  /// If a callback of this call has destroyed the handle, no further call will come: the machine ends here. The caller
  /// must release the returned reference without the lock.
  std::shared_ptr<Machine> end_of_call(Lock& lock);

  /// Returns whether the application may be sleeping on the descriptor.
  bool was_armed() const { return was_armed_; }
  /// Makes the descriptor readable at `at`, so that its sleeper looks again.
  void wake_by(Instant at) { descriptor_.set(at); }
  /// Call when the port closes. The descriptor stays open and readable from then on.
  void close();

 private:
  bool is_deliverable() const;
  void look_after(Lock& lock);
  std::shared_ptr<Machine> end_kept(Lock& lock);
  void run_signals();

  Machine& machine_;
  bool was_armed_ = false;
  TimedDescriptor descriptor_;
  std::uint32_t deliveries_ = 0;  // since the last look at other work
};

}  // namespace fairlead::net
