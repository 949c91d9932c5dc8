#include "qp/pair_counters.hpp"

#include <fmt/format.h>

namespace fairlead::qp {

std::string describe(const PairCounters& c, std::uint32_t regions) {
  return fmt::format("carried out by us on this host: writes {}, reads {}, atomics {}; waited {}\n", c.direct_writes,
                     c.direct_reads, c.direct_atomics, c.direct_waits) +
         fmt::format("of those by system calls: writes {}, reads {}; failed {}\n", c.writes_by_calls, c.reads_by_calls,
                     c.calls_failed) +
         fmt::format("fast path: short sends into shared memory {}, plain receives {}\n", c.fast_sends,
                     c.fast_receives) +
         fmt::format("requests sent {}, executed {}, repeated {}; duplicates {}, refused {}; held {} (most {} bytes), ",
                     c.requests_sent, c.requests_executed, c.requests_repeated, c.duplicates, c.refused_repeats, c.held,
                     c.held_bytes_most) +
         fmt::format("refused for lack of room {}\nnot ready {}, receiver not ready {}, no receive {}, ",
                     c.refused_no_room, c.refused_not_ready, c.receiver_not_ready, c.dropped_no_receive) +
         fmt::format("wrong queue key {}, gaps {}, malformed {}, late answers {}\n", c.dropped_queue_key, c.dropped_gap,
                     c.dropped_malformed, c.dropped_late_answer) +
         fmt::format("answers sent {}, dropped {}; unreachable {}; completions lost {}; regions {}\n", c.answers_sent,
                     c.dropped_answers, c.dropped_unreachable, c.completions_lost, regions);
}

}  // namespace fairlead::qp
