#pragma once
// The sleep of a thread of the host engine: until a call, a nudge, or something of the network comes. The thread then
// makes the engines' passes itself. So a message from the network wakes one thread of the daemon, and the engine's own
// thread stays asleep.

#include <vector>

#include <poll.h>

#include "base/sleep_timer.hpp"
#include "base/time.hpp"
#include "host/served_engines.hpp"

namespace fairlead::host {

/// For one thread.
class EnginesSleep {
 public:
  /// Sleeps until `calls` is readable, an engine has work, or `deadline`. Returns whether an engine may have work.
  bool sleep(const ServedEngines& engines, int calls, base::Instant deadline);

 private:
  std::vector<embedded::Driver*> lying_;
  std::vector<pollfd> woken_;
  base::SleepTimer timer_;
};

}  // namespace fairlead::host
