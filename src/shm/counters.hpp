#pragma once
// Counters of the transport between engines of this host; "shm." in the statistics. "shm.process." counts the processes
// that cross-memory attach reaches, and the reasons why it does not reach others.

#include <array>
#include <cstdint>

#include "base/counter_row.hpp"
#include "shm/cross_memory.hpp"

namespace fairlead::shm {

struct TransportCounters {
  std::uint64_t messages_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t chunks_sent = 0;
  std::uint64_t messages_delivered = 0;
  std::uint64_t bytes_delivered = 0;
  std::uint64_t messages_waited = 0;
  std::uint64_t messages_failed = 0;
  std::uint64_t messages_pulled = 0;
};

inline constexpr std::array kTransportCounterRows{
    base::CounterRow{"messages_sent", &TransportCounters::messages_sent, "messages written for peers of this host"},
    base::CounterRow{"bytes_sent", &TransportCounters::bytes_sent,
                     "bytes of the messages written for peers of this host"},
    base::CounterRow{"chunks_sent", &TransportCounters::chunks_sent, "chunks of long messages among what was written"},
    base::CounterRow{"messages_delivered", &TransportCounters::messages_delivered,
                     "messages that came from peers of this host"},
    base::CounterRow{"bytes_delivered", &TransportCounters::bytes_delivered,
                     "bytes of the messages that came from peers of this host"},
    base::CounterRow{"messages_waited", &TransportCounters::messages_waited,
                     "messages that had to wait for room in the ring"},
    base::CounterRow{"messages_failed", &TransportCounters::messages_failed, "messages whose peer was lost"},
    base::CounterRow{"messages_pulled", &TransportCounters::messages_pulled,
                     "sent messages that the peer copied directly from this process's memory"},
};
static_assert(base::are_complete(kTransportCounterRows));

struct ConnectionCounters {
  std::uint64_t opened = 0;
  std::uint64_t ended = 0;
  std::uint64_t declined_user = 0;
  std::uint64_t declined_greeting = 0;
  std::uint64_t declined_address = 0;
  std::uint64_t declined_proof = 0;
  std::uint64_t declined_late = 0;
  std::uint64_t declined_crowd = 0;
  std::uint64_t accepts_failed = 0;
  std::uint64_t put_out = 0;
  std::uint64_t declined_full = 0;
  std::uint64_t declined_memory = 0;
  std::uint64_t refused_record = 0;
  std::uint64_t sleeps = 0;
  std::uint64_t unwatched = 0;
  std::uint64_t arenas_seen = 0;
  std::uint64_t arenas_refused = 0;
  std::uint64_t traced_seen = 0;
  std::uint64_t traced_refused = 0;
  std::array<std::uint64_t, CrossMemory::kDenials> processes{};
};

inline constexpr std::array kConnectionCounterRows{
    base::CounterRow{"peers_opened", &ConnectionCounters::opened, "connections that were opened"},
    base::CounterRow{"peers_ended", &ConnectionCounters::ended, "connections that have ended"},
    base::CounterRow{"declined.user", &ConnectionCounters::declined_user, "connections of a user that is not admitted"},
    base::CounterRow{"declined.greeting", &ConnectionCounters::declined_greeting,
                     "greetings that are not of our protocol"},
    base::CounterRow{"declined.address", &ConnectionCounters::declined_address,
                     "greetings from an address that this host does not have"},
    base::CounterRow{"declined.proof", &ConnectionCounters::declined_proof,
                     "strangers who did not prove that they are at the address that they named"},
    base::CounterRow{"declined.late", &ConnectionCounters::declined_late,
                     "connections without a greeting or an answer in time"},
    base::CounterRow{"declined.crowd", &ConnectionCounters::declined_crowd,
                     "connections of a user who has too many without a greeting"},
    base::CounterRow{"accepts_failed", &ConnectionCounters::accepts_failed,
                     "times that the kernel had no descriptor or no memory for a newcomer"},
    base::CounterRow{"peers_put_out", &ConnectionCounters::put_out,
                     "peers that were disconnected because they did not leave withdrawn memory in time"},
    base::CounterRow{"declined.full", &ConnectionCounters::declined_full, "connections beyond shm_peers_max"},
    base::CounterRow{"declined.memory", &ConnectionCounters::declined_memory,
                     "connections for which there was no memory"},
    base::CounterRow{"refused_record", &ConnectionCounters::refused_record,
                     "peers that were expelled because of invalid data in their shared memory"},
    base::CounterRow{"sleeps", &ConnectionCounters::sleeps, "times that the engine armed its doorbell to sleep"},
    base::CounterRow{"unwatched", &ConnectionCounters::unwatched,
                     "times that the engine stopped polling a quiet peer, which rings the doorbell from then on"},
    base::CounterRow{"arenas_seen", &ConnectionCounters::arenas_seen, "peers whose shared segment is mapped"},
    base::CounterRow{"arenas_refused", &ConnectionCounters::arenas_refused,
                     "shared segments that were not mapped: not of our protocol, or larger than ours"},
    base::CounterRow{"traced_seen", &ConnectionCounters::traced_seen,
                     "peers whose registered memory without remote rights is mapped, because we may trace them"},
    base::CounterRow{"traced_refused", &ConnectionCounters::traced_refused,
                     "peers whose registered memory without remote rights is not mapped: refused by the kernel, or not "
                     "of our protocol"},
};
static_assert(base::are_complete(kConnectionCounterRows, CrossMemory::kDenials));

}  // namespace fairlead::shm
