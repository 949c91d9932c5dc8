#pragma once
// A port is as its address is: there, on an interface that is up, or not. Whoever waits for events hears of changes; no
// thread of ours does, since a program with threads that we do not know of keeps its memory for itself (docs/shm.md).

#include "verbs/context_state.hpp"

namespace fairlead::verbs {

/// Whether the context's port is active now.
bool has_port(const ContextState& context);

/// Sleeps until an event waits, if the events' descriptor blocks; changes of the port meanwhile become events. EINTR.
Result<> wait_for_event(ContextState& context);

}  // namespace fairlead::verbs
