#pragma once
// A port is active while its address is on an interface that is up. The thread that waits for asynchronous events
// detects changes. There is no thread for this: a program with threads that the engine does not control gets no memory
// moved to the shared segment (docs/shm.md).

#include "verbs/context_state.hpp"

namespace fairlead::verbs {

/// Returns whether the context's port is active now.
bool has_port(const ContextState& context);

/// Sleeps until an event is available, if the events' descriptor is blocking. Changes of the port meanwhile become
/// events. Fails with EINTR on a signal.
Result<> wait_for_event(ContextState& context);

}  // namespace fairlead::verbs
