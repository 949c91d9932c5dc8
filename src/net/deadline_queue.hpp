#pragma once
// A timer wheel of the queued buffers that have a deadline.

#include "base/timer_wheel.hpp"
#include "net/buffer_state.hpp"

namespace fairlead::net {

using DeadlineQueue = base::TimerWheel<BufferState, &BufferState::deadline_hook, Instant, &BufferState::deadline>;

}  // namespace fairlead::net
