#pragma once
// What a faulty path did to datagrams, one counter a reason. Every datagram handed over is dropped, held or passed on;
// the other counters overlap.

#include <array>
#include <cstdint>
#include <string_view>

namespace fairlead::path {

struct FaultCounters {
  std::uint64_t offered = 0;  // datagrams handed to the path
  std::uint64_t dropped = 0;
  std::uint64_t bursts = 0;  // runs of losses begun
  std::uint64_t reordered = 0;
  std::uint64_t reorder_expired = 0;  // of those: came out by time, too few others came by
  std::uint64_t duplicated = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t delayed = 0;       // copies included
  std::uint64_t pool_overran = 0;  // passed on unharmed (or a copy not made): no room to hold it
  std::uint64_t lost_waiting = 0;  // the path below had no room, and neither had the pool
  std::uint64_t held = 0;          // now
};

struct FaultCounterRow {
  std::string_view name;
  std::uint64_t FaultCounters::* value;
};
inline constexpr std::array kFaultCounterRows{
    FaultCounterRow{"offered", &FaultCounters::offered},
    FaultCounterRow{"dropped", &FaultCounters::dropped},
    FaultCounterRow{"bursts", &FaultCounters::bursts},
    FaultCounterRow{"reordered", &FaultCounters::reordered},
    FaultCounterRow{"reorder_expired", &FaultCounters::reorder_expired},
    FaultCounterRow{"duplicated", &FaultCounters::duplicated},
    FaultCounterRow{"corrupted", &FaultCounters::corrupted},
    FaultCounterRow{"delayed", &FaultCounters::delayed},
    FaultCounterRow{"pool_overran", &FaultCounters::pool_overran},
    FaultCounterRow{"lost_waiting", &FaultCounters::lost_waiting},
    FaultCounterRow{"held", &FaultCounters::held},
};

}  // namespace fairlead::path
