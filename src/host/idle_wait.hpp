#pragma once
// The wait of a thread of the host engine when nothing happens: as a waiter in an application does, it polls, yields,
// then sleeps (queue/wait_ladder.hpp).

#include <optional>

#include "base/time.hpp"
#include "host/engines_sleep.hpp"
#include "queue/wait_ladder.hpp"

namespace fairlead::host {

/// For one thread.
class IdleWait {
 public:
  IdleWait(queue::WaitChoice choice, base::Duration spin_most) : ladder_(choice, spin_most) {}

  /// Called after a pass that found nothing. Yields if it is time. Returns true if the thread should sleep.
  bool has_to_sleep(base::Instant now);
  /// Sleeps until `calls` is readable, an engine has work, or `deadline`. Returns whether an engine may have work.
  bool sleep(const ServedEngines& engines, int calls, base::Instant deadline);
  /// Called after a pass that found something.
  void end(base::Instant now);

 private:
  queue::WaitLadder ladder_;
  std::optional<queue::WaitLadder::Wait> wait_;
  EnginesSleep sleep_;
};

}  // namespace fairlead::host
