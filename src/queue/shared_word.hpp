#pragma once
// A word shared by both sides of a queue. tests/weak_memory compiles the queue with another type: its folder comes
// first in the include path.

#include <atomic>
#include <cstdint>

namespace fairlead::queue {

using SharedWord = std::atomic<std::uint64_t>;

}  // namespace fairlead::queue
