#pragma once
// Counters of one application of the host engine, named "host." in its statistics. The application's library counts
// them; they are here so that the catalogue of counters explains them.

#include <array>
#include <cstdint>

#include "base/counter_row.hpp"

namespace fairlead::engine {

struct ApplicationCounters {
  std::uint64_t requests = 0;
  std::uint64_t copied_bytes = 0;
  std::uint64_t wakes = 0;
  std::uint64_t moved_bytes = 0;
};

inline constexpr std::array kApplicationCounterRows{
    base::CounterRow{"requests", &ApplicationCounters::requests,
                     "requests that this application wrote into its ring to the host engine"},
    base::CounterRow{"copied_bytes", &ApplicationCounters::copied_bytes,
                     "bytes that the library copied between this application's private memory and the shared memory"},
    base::CounterRow{"wakes", &ApplicationCounters::wakes,
                     "times that this application woke the host engine with a system call"},
    base::CounterRow{"moved_bytes", &ApplicationCounters::moved_bytes,
                     "bytes of this application's memory regions that are in shared memory for the host engine"},
};
static_assert(base::are_complete(kApplicationCounterRows));

}  // namespace fairlead::engine
