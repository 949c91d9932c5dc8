#pragma once
// The timer of a thread that sleeps again and again for a short time, and is mostly woken before that time is over. A
// timeout of poll() is set and cancelled with each sleep. If it is the processor's next timer, the kernel programs the
// processor both times, which takes 8 us each in a virtual machine. This timer stays set between sleeps. It is set
// again only after it has fired, or for an earlier time. So it may wake a sleep too early, but not often.

#include <chrono>
#include <span>

#include <poll.h>

#include "base/file_descriptor.hpp"
#include "base/time.hpp"

namespace fairlead::base {

/// For one thread at a time.
class SleepTimer {
 public:
  SleepTimer();

  /// Returns a descriptor that becomes readable by `deadline`, perhaps earlier; -1 if the kernel provides none. Valid
  /// for one sleep.
  int descriptor_for(Instant deadline, Instant now);
  /// Sleeps until a descriptor is readable, or until `deadline`. The last element is free: the timer may take it.
  void sleep(std::span<pollfd> descriptors, Instant deadline);

 private:
  static constexpr Duration kShortSleep = std::chrono::milliseconds(10);  // a longer one needs no timer

  FileDescriptor timer_;
  Instant set_for_{};        // in the past: it has fired, or was never set
  bool has_failed_ = false;  // the kernel provides none; nobody tries again
};

}  // namespace fairlead::base
