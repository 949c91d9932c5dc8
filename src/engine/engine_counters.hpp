#pragma once
// Counters of what the engine did, refused or dropped, one per reason, named "engine." in the statistics. The link and
// the path have their own counters.

#include <array>
#include <cstdint>

#include "base/counter_row.hpp"

namespace fairlead::engine {

struct EngineCounters {
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t puts_received = 0;
  std::uint64_t gets_received = 0;
  std::uint64_t puts_carried_out = 0;
  std::uint64_t gets_carried_out = 0;
  std::uint64_t not_carried_out = 0;
  std::uint64_t puts_by_calls = 0;
  std::uint64_t gets_by_calls = 0;
  std::uint64_t calls_failed = 0;
  std::uint64_t exposures_crowded = 0;
  std::uint64_t messages_lent = 0;
  std::uint64_t loans_taken = 0;
  std::uint64_t refused_loans = 0;
  std::uint64_t dropped_given_up = 0;
  std::uint64_t dropped_no_port = 0;
  std::uint64_t dropped_no_buffer = 0;
  std::uint64_t dropped_sender_lost = 0;
  std::uint64_t ended_by_force = 0;
  std::uint64_t dropped_late_answer = 0;
  std::uint64_t dropped_unknown_operation = 0;
  std::uint64_t dropped_answers = 0;
  std::uint64_t refused_stale = 0;
  std::uint64_t refused_not_permitted = 0;
  std::uint64_t refused_too_big = 0;
  std::uint64_t asked_early = 0;
  std::uint64_t keyrings_read = 0;
};

inline constexpr std::array kEngineCounterRows{
    base::CounterRow{"messages_sent", &EngineCounters::messages_sent, "messages that ports sent"},
    base::CounterRow{"messages_received", &EngineCounters::messages_received, "messages that posted buffers received"},
    base::CounterRow{"puts_received", &EngineCounters::puts_received, "puts of peers into memory of this engine"},
    base::CounterRow{"gets_received", &EngineCounters::gets_received, "gets of peers from memory of this engine"},
    base::CounterRow{"direct.puts", &EngineCounters::puts_carried_out,
                     "puts that we carried out ourselves in the memory of a peer of this host"},
    base::CounterRow{"direct.gets", &EngineCounters::gets_carried_out,
                     "gets that we carried out ourselves in the memory of a peer of this host"},
    base::CounterRow{
        "direct.not_possible", &EngineCounters::not_carried_out,
        "puts and gets requested through the ring: claimed by another peer, not published, or no room in the ring"},
    base::CounterRow{"direct.puts_by_calls", &EngineCounters::puts_by_calls,
                     "puts among those carried out that took system calls (cross-memory attach)"},
    base::CounterRow{"direct.gets_by_calls", &EngineCounters::gets_by_calls,
                     "gets among those carried out that took system calls (cross-memory attach)"},
    base::CounterRow{"direct.calls_failed", &EngineCounters::calls_failed,
                     "puts and gets whose system call failed; they were requested through the ring"},
    base::CounterRow{"direct.crowded", &EngineCounters::exposures_crowded,
                     "exposures that were not published, because their place in the table was taken"},
    base::CounterRow{"loan.sent", &EngineCounters::messages_lent, "messages that were lent to the receiver in place"},
    base::CounterRow{"loan.taken", &EngineCounters::loans_taken,
                     "lent messages that were read in place; others were copied"},
    base::CounterRow{"loan.refused", &EngineCounters::refused_loans,
                     "lent messages whose place is outside their sender's memory"},
    base::CounterRow{"loan.given_up", &EngineCounters::dropped_given_up,
                     "lent messages that were not delivered, because their sender had given up this engine"},
    base::CounterRow{"dropped.no_port", &EngineCounters::dropped_no_port, "messages for a port that is not open"},
    base::CounterRow{"dropped.no_buffer", &EngineCounters::dropped_no_buffer,
                     "messages for which no posted buffer had room"},
    base::CounterRow{"dropped.sender_lost", &EngineCounters::dropped_sender_lost,
                     "messages whose sender fell silent or restarted half-way"},
    base::CounterRow{
        "ended_by_force", &EngineCounters::ended_by_force,
        "operations that ended by force, because a peer held them up after they were cancelled or used up"},
    base::CounterRow{"dropped.late_answer", &EngineCounters::dropped_late_answer,
                     "answers to operations that have ended"},
    base::CounterRow{"dropped.unknown_operation", &EngineCounters::dropped_unknown_operation,
                     "messages with an operation that does not exist"},
    base::CounterRow{"dropped.answers", &EngineCounters::dropped_answers,
                     "answers to operations, dropped because their peer was lost while they waited for room"},
    base::CounterRow{"refused.stale", &EngineCounters::refused_stale,
                     "puts and gets with an unknown key, or with a key that is no longer valid"},
    base::CounterRow{"refused.not_permitted", &EngineCounters::refused_not_permitted,
                     "puts into memory exposed for reading, and gets from memory exposed for writing"},
    base::CounterRow{"refused.too_big", &EngineCounters::refused_too_big,
                     "puts and gets of more bytes than were exposed or requested"},
    base::CounterRow{"asked_early", &EngineCounters::asked_early,
                     "puts and gets that came before their exposure; their peers repeat them"},
    base::CounterRow{"keyrings_read", &EngineCounters::keyrings_read,
                     "times that changed files of sealing were read again"},
};
static_assert(base::are_complete(kEngineCounterRows));

}  // namespace fairlead::engine
