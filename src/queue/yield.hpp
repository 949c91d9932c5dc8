#pragma once
// Yields of threads that wait or poll.

#include "base/time.hpp"

namespace fairlead::queue {

/// Yields the processor, and returns the time afterwards; `before` is the present time. The scheduler charges a yield
/// as a whole time slice, so among sleepers and wakers a thread that yields would wait for many slices of the others.
/// Once a yield has let another thread run, the calling thread has short slices.
base::Instant yield(base::Instant before) noexcept;

}  // namespace fairlead::queue
