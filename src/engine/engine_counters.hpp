#pragma once
// What the engine refused or threw away, one counter a reason. The link's and the path's have their own tables.

#include <array>
#include <cstdint>

namespace fairlead::engine {

struct EngineCounters {
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t puts_received = 0;
  std::uint64_t gets_received = 0;
  std::uint64_t puts_carried_out = 0;  // by us, in the memory of a peer of this host
  std::uint64_t gets_carried_out = 0;
  std::uint64_t not_carried_out = 0;  // but asked for: claimed by somebody else, not shown, or the ring is full
  std::uint64_t puts_by_calls = 0, gets_by_calls = 0;  // of those carried out: outside the arena
  std::uint64_t calls_failed = 0;                      // in the middle of it: then it was asked for
  std::uint64_t exposures_crowded = 0;                 // not shown: their place in the table is taken
  std::uint64_t messages_lent = 0;                     // handed over in place
  std::uint64_t loans_taken = 0;                       // read in place; others were copied
  std::uint64_t refused_loans = 0;                     // said to lie outside their sender's memory
  std::uint64_t dropped_no_port = 0;                   // message for a port that is not open
  std::uint64_t dropped_no_buffer = 0;                 // no posted buffer had room for the message
  std::uint64_t dropped_sender_lost = 0;               // message whose sender fell silent or restarted half-way
  std::uint64_t refused_stale = 0;                     // put or get by a key that names nothing (any more)
  std::uint64_t refused_not_permitted = 0;             // put into readable memory, get out of writable memory
  std::uint64_t refused_too_big = 0;                   // transfer longer than what was exposed or asked for
  std::uint64_t dropped_late_answer = 0;               // answer to an operation that has ended
  std::uint64_t dropped_unknown_operation = 0;         // message header with an operation that does not exist
  std::uint64_t dropped_answers = 0;                   // that waited for room to a peer that is lost
  std::uint64_t ended_by_force = 0;                    // cancelled, and held up by a peer for the give-up time
  std::uint64_t keyrings_read = 0;                     // besides the first: the files of sealing have changed
};

}  // namespace fairlead::engine
