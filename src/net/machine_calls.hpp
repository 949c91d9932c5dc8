#pragma once
// Synchronous delivery: what the application's calls do for a machine, which has no thread then. Each does its own,
// then what an event thread does elsewhere: deadlines, news of the engine, figures, the last step of a stop.

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

/// Its state is under the machine's lock.
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
  /// Returns when the machine has ended and nobody calls back. Where nobody else makes it end, that is done here.
  void drive_to_end(Lock& lock);
  /// If a callback of this call has destroyed the handle, nobody else calls any more: the machine ends here. What comes
  /// back is to be released without the lock.
  std::shared_ptr<Machine> end_of_call(Lock& lock);

  /// The application may sleep on the descriptor.
  bool was_armed() const { return was_armed_; }
  /// Whoever sleeps on the descriptor looks again by then.
  void wake_by(Instant at) { descriptor_.set(at); }
  /// The machine's port closes. The descriptor stays, readable for good, for whoever sleeps on it.
  void close();

 private:
  bool is_deliverable() const;
  void look_after(Lock& lock);
  void run_signals();

  Machine& machine_;
  bool was_armed_ = false;
  TimedDescriptor descriptor_;
  std::uint32_t deliveries_ = 0;  // since the last look at what else is due
};

}  // namespace fairlead::net
