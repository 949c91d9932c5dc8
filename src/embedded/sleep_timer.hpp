#pragma once
// The timer of a thread that sleeps again and again for a short time, and is mostly woken before that time is over. A
// timeout of poll() is set and cancelled with each sleep. If it is the processor's next timer, the kernel programs the
// processor both times, which takes 8 us each in a virtual machine. This timer stays set between sleeps. It is set
// again only after it has fired, or for an earlier time. So it may wake a sleep too early, but not often.

#include "base/file_descriptor.hpp"
#include "base/time.hpp"

namespace fairlead::embedded {

/// For one thread at a time.
class SleepTimer {
 public:
  SleepTimer();

  /// Returns a descriptor that becomes readable by `deadline`, perhaps earlier; -1 if the kernel provides none. Valid
  /// for one sleep.
  int descriptor_for(base::Instant deadline, base::Instant now);

 private:
  base::FileDescriptor timer_;
  base::Instant set_for_{};  // in the past: it has fired, or was never set
  bool has_failed_ = false;  // the kernel provides none; nobody tries again
};

}  // namespace fairlead::embedded
