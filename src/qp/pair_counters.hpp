#pragma once
// What queue pairs did, and what was refused or thrown away: one counter a reason.

#include <cstdint>
#include <string>

namespace fairlead::qp {

struct PairCounters {
  std::uint64_t requests_sent = 0;
  std::uint64_t requests_executed = 0;
  std::uint64_t answers_sent = 0;
  std::uint64_t requests_repeated = 0;  // sent again: RNR, not ready, no answer
  std::uint64_t duplicates = 0;         // answered, not executed
  std::uint64_t refused_repeats = 0;    // of those: not allowed (any more)
  std::uint64_t held = 0;               // came early and waited
  std::uint64_t held_bytes_most = 0;
  std::uint64_t refused_no_room = 0;     // came early and found no room: asked for again
  std::uint64_t refused_not_ready = 0;   // no such number, wrong state, wrong peer
  std::uint64_t receiver_not_ready = 0;  // RC: no receive posted, told so
  std::uint64_t dropped_no_receive = 0;  // UC, UD: no receive posted, or too small
  std::uint64_t dropped_queue_key = 0;   // UD
  std::uint64_t dropped_gap = 0;         // UC: messages given up because one before them was lost
  std::uint64_t dropped_malformed = 0;
  std::uint64_t dropped_late_answer = 0;
  std::uint64_t dropped_answers = 0;                                      // that waited for room to a peer that is lost
  std::uint64_t dropped_unreachable = 0;                                  // UD, UC: no such peer
  std::uint64_t completions_lost = 0;                                     // overrun
  std::uint64_t fast_sends = 0, fast_receives = 0;                        // of those sent and executed
  std::uint64_t direct_writes = 0, direct_reads = 0, direct_atomics = 0;  // carried out by us in the peer's memory
  std::uint64_t direct_waits = 0;                                         // until what was sent before had ended
  std::uint64_t writes_by_calls = 0, reads_by_calls = 0;                  // of those, outside what it shows
  std::uint64_t calls_failed = 0;                                         // then it is asked for
};

/// For people, a line each.
std::string describe(const PairCounters& counters, std::uint32_t regions);

}  // namespace fairlead::qp
