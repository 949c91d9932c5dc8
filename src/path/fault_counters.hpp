#pragma once
// Counts what a faulty path did to datagrams, by reason; shown under "path.fault." in the statistics. Every datagram
// handed over is dropped, held or passed on; the other counters overlap.

#include <array>
#include <cstdint>

#include "base/counter_row.hpp"

namespace fairlead::path {

struct FaultCounters {
  std::uint64_t offered = 0;
  std::uint64_t dropped = 0;
  std::uint64_t bursts = 0;
  std::uint64_t reordered = 0;
  std::uint64_t reorder_expired = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t delayed = 0;
  std::uint64_t pool_overran = 0;
  std::uint64_t lost_waiting = 0;
  std::uint64_t held = 0;
};

inline constexpr std::array kFaultCounterRows{
    base::CounterRow{"offered", &FaultCounters::offered,
                     "datagrams that the engine passed to the path that injects faults"},
    base::CounterRow{"dropped", &FaultCounters::dropped, "datagrams that were lost on purpose"},
    base::CounterRow{"bursts", &FaultCounters::bursts, "runs of losses that began"},
    base::CounterRow{"reordered", &FaultCounters::reordered, "datagrams that were held back behind later ones"},
    base::CounterRow{"reorder_expired", &FaultCounters::reorder_expired,
                     "reordered datagrams released by time, because too few others followed"},
    base::CounterRow{"duplicated", &FaultCounters::duplicated, "datagrams of which a copy was sent"},
    base::CounterRow{"corrupted", &FaultCounters::corrupted, "datagrams of which one byte was changed"},
    base::CounterRow{"delayed", &FaultCounters::delayed, "datagrams that were delayed, copies included"},
    base::CounterRow{
        "pool_overran", &FaultCounters::pool_overran,
        "times that the pool, or the list of reordered datagrams, was full: a fault or copy was omitted, or a "
        "datagram lost (lost_waiting)"},
    base::CounterRow{"lost_waiting", &FaultCounters::lost_waiting,
                     "datagrams lost because neither the path below nor the pool had room"},
    base::CounterRow{"held", &FaultCounters::held, "datagrams that are held back now"},
};
static_assert(base::are_complete(kFaultCounterRows));

}  // namespace fairlead::path
