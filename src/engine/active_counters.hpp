#pragma once
// Counters of active messages, named "engine.active." in the statistics.

#include <array>
#include <cstdint>

#include "base/counter_row.hpp"

namespace fairlead::engine {

struct ActiveCounters {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t refused = 0;
  std::uint64_t late_answers = 0;
  std::uint64_t dropped_answers = 0;
};

inline constexpr std::array kActiveCounterRows{
    base::CounterRow{"sent", &ActiveCounters::sent, "active messages that left"},
    base::CounterRow{"received", &ActiveCounters::received, "active messages whose handlers are to run"},
    base::CounterRow{"refused", &ActiveCounters::refused,
                     "active messages refused for lack of access, port, room or memory; their senders got an answer"},
    base::CounterRow{"late_answers", &ActiveCounters::late_answers, "answers to active messages that have ended"},
    base::CounterRow{"dropped_answers", &ActiveCounters::dropped_answers,
                     "answers to active messages, dropped because their peer was lost while they waited for room"},
};
static_assert(base::are_complete(kActiveCounterRows));

}  // namespace fairlead::engine
