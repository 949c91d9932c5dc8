#pragma once
// Counters of queue pairs, under "qp." in the statistics. Each reason to refuse or drop something has its own counter.

#include <array>
#include <cstdint>

#include "base/counter_row.hpp"

namespace fairlead::qp {

struct PairCounters {
  std::uint64_t requests_sent = 0;
  std::uint64_t requests_executed = 0;
  std::uint64_t answers_sent = 0;
  std::uint64_t requests_repeated = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t refused_repeats = 0;
  std::uint64_t held = 0;
  std::uint64_t held_bytes_most = 0;
  std::uint64_t refused_no_room = 0;
  std::uint64_t refused_not_ready = 0;
  std::uint64_t receiver_not_ready = 0;
  std::uint64_t dropped_no_receive = 0;
  std::uint64_t dropped_refused = 0;
  std::uint64_t dropped_queue_key = 0;
  std::uint64_t dropped_gap = 0;
  std::uint64_t dropped_malformed = 0;
  std::uint64_t dropped_late_answer = 0;
  std::uint64_t dropped_taken_back = 0;
  std::uint64_t dropped_answers = 0;
  std::uint64_t dropped_unreachable = 0;
  std::uint64_t group_sent = 0;
  std::uint64_t group_received = 0;
  std::uint64_t dropped_group_send = 0;
  std::uint64_t dropped_group_malformed = 0;
  std::uint64_t dropped_group_foreign = 0;
  std::uint64_t dropped_group_source = 0;
  std::uint64_t dropped_group_sealed = 0;
  std::uint64_t completions_lost = 0;
  std::uint64_t fast_sends = 0;
  std::uint64_t fast_receives = 0;
  std::uint64_t direct_writes = 0;
  std::uint64_t direct_reads = 0;
  std::uint64_t direct_atomics = 0;
  std::uint64_t direct_waits = 0;
  std::uint64_t writes_by_calls = 0;
  std::uint64_t reads_by_calls = 0;
  std::uint64_t calls_failed = 0;
};

inline constexpr std::array kPairCounterRows{
    base::CounterRow{"requests_sent", &PairCounters::requests_sent,
                     "requests of queue pairs that were sent to their peer"},
    base::CounterRow{"requests_executed", &PairCounters::requests_executed, "requests of peers that were executed"},
    base::CounterRow{"answers_sent", &PairCounters::answers_sent, "answers to requests of peers"},
    base::CounterRow{"requests_repeated", &PairCounters::requests_repeated,
                     "requests that were sent again: no receive there, not ready, or no answer"},
    base::CounterRow{"duplicates", &PairCounters::duplicates,
                     "repeated requests of peers: answered, not executed again"},
    base::CounterRow{"refused_repeats", &PairCounters::refused_repeats,
                     "repeated requests of peers that are no longer permitted"},
    base::CounterRow{"held", &PairCounters::held, "requests that arrived before their predecessors, and waited"},
    base::CounterRow{"held_bytes_most", &PairCounters::held_bytes_most,
                     "most bytes of requests that waited for their predecessors at a time"},
    base::CounterRow{"refused_no_room", &PairCounters::refused_no_room,
                     "requests that arrived early without room for them: the peer must repeat them"},
    base::CounterRow{"refused_not_ready", &PairCounters::refused_not_ready,
                     "requests to an unknown queue pair number, in the wrong state, or from the wrong peer"},
    base::CounterRow{"receiver_not_ready", &PairCounters::receiver_not_ready,
                     "sends over RC without a posted receive: the requester got an RNR answer"},
    base::CounterRow{"dropped_no_receive", &PairCounters::dropped_no_receive,
                     "sends over UC and UD without a posted receive; datagrams too long for it"},
    base::CounterRow{"dropped_refused", &PairCounters::dropped_refused,
                     "requests over UC with a wrong key or range, or without the right"},
    base::CounterRow{"dropped_queue_key", &PairCounters::dropped_queue_key, "datagrams with the wrong queue key"},
    base::CounterRow{"dropped_gap", &PairCounters::dropped_gap,
                     "messages over UC that were given up because one before them was lost"},
    base::CounterRow{"dropped_malformed", &PairCounters::dropped_malformed, "malformed requests and answers"},
    base::CounterRow{"dropped_late_answer", &PairCounters::dropped_late_answer,
                     "answers to requests that are no longer pending"},
    base::CounterRow{"dropped_taken_back", &PairCounters::dropped_taken_back,
                     "requests and answers that their sender took back while they were read in its memory"},
    base::CounterRow{"dropped_answers", &PairCounters::dropped_answers,
                     "answers of queue pairs, dropped because their peer was lost while they waited for room"},
    base::CounterRow{"dropped_unreachable", &PairCounters::dropped_unreachable,
                     "requests over UD and UC to a peer that cannot be reached"},
    base::CounterRow{"group_sent", &PairCounters::group_sent, "datagrams that were sent to groups (multicast)"},
    base::CounterRow{"group_received", &PairCounters::group_received,
                     "datagrams of groups that arrived, delivered or not"},
    base::CounterRow{
        "dropped_group_send", &PairCounters::dropped_group_send,
        "datagrams to groups that the kernel did not take: no route, or a firewall (ip route add 224.0.0.0/4 "
        "dev NAME)"},
    base::CounterRow{
        "dropped_group_malformed", &PairCounters::dropped_group_malformed,
        "malformed datagrams of groups, or datagrams that name another group than their destination address"},
    base::CounterRow{
        "dropped_group_foreign", &PairCounters::dropped_group_foreign,
        "datagrams of groups without an attached queue pair, which share their address with an attached group"},
    base::CounterRow{"dropped_group_source", &PairCounters::dropped_group_source,
                     "datagrams of groups that were not read: their source had sent too many malformed ones"},
    base::CounterRow{"dropped_group_sealed", &PairCounters::dropped_group_sealed,
                     "datagrams to and of groups whose addresses require sealed traffic "
                     "(FAIRLEAD_SEAL_REQUIRE)"},
    base::CounterRow{"completions_lost", &PairCounters::completions_lost,
                     "completions lost because their queue was full"},
    base::CounterRow{"fast_sends", &PairCounters::fast_sends, "short sends that took the fast path inside this host"},
    base::CounterRow{"fast_receives", &PairCounters::fast_receives,
                     "sends that the fast path placed into a posted receive"},
    base::CounterRow{"direct_writes", &PairCounters::direct_writes,
                     "writes that we carried out in the memory of a peer of this host"},
    base::CounterRow{"direct_reads", &PairCounters::direct_reads,
                     "reads that we carried out in the memory of a peer of this host"},
    base::CounterRow{"direct_atomics", &PairCounters::direct_atomics,
                     "atomics that we carried out in the memory of a peer of this host"},
    base::CounterRow{"direct_waits", &PairCounters::direct_waits,
                     "requests that waited to be carried out until those before them had ended"},
    base::CounterRow{"writes_by_calls", &PairCounters::writes_by_calls,
                     "writes among qp.direct_writes that took cross-memory attach"},
    base::CounterRow{"reads_by_calls", &PairCounters::reads_by_calls,
                     "reads among qp.direct_reads that took cross-memory attach"},
    base::CounterRow{"calls_failed", &PairCounters::calls_failed,
                     "requests that cross-memory attach failed for: they were sent"},
};
static_assert(base::are_complete(kPairCounterRows));

}  // namespace fairlead::qp
