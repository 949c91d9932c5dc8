#pragma once
// A word that both sides of a queue have. tests/weak_memory compiles the queue with one of its own, whose folder comes
// first in the include path.

#include <atomic>
#include <cstdint>

namespace fairlead::queue {

using SharedWord = std::atomic<std::uint64_t>;

}  // namespace fairlead::queue
