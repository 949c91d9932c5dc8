#pragma once
// Describes each counter of a path (base/counter_row.hpp); shown under "path." in the statistics.

#include <array>

#include "base/counter_row.hpp"
#include "path/path.hpp"

namespace fairlead::path {

inline constexpr std::array kPathCounterRows{
    base::CounterRow{"datagrams_sent", &PathCounters::datagrams_sent, "datagrams that the kernel accepted"},
    base::CounterRow{"bytes_sent", &PathCounters::bytes_sent,
                     "payload bytes of the datagrams that the kernel accepted"},
    base::CounterRow{"send_calls", &PathCounters::send_calls,
                     "system calls to send datagrams, failed ones included; a call that is repeated after an earlier "
                     "datagram's error counts once"},
    base::CounterRow{"datagrams_received", &PathCounters::datagrams_received, "datagrams that the kernel delivered"},
    base::CounterRow{"bytes_received", &PathCounters::bytes_received,
                     "payload bytes of the datagrams that the kernel delivered"},
    base::CounterRow{"receive_calls", &PathCounters::receive_calls,
                     "system calls to receive datagrams, also those that found none"},
    base::CounterRow{"send_later", &PathCounters::send_later,
                     "calls after which the kernel asked to come back (EAGAIN): the send buffer was full"},
    base::CounterRow{"send_no_buffers", &PathCounters::send_no_buffers,
                     "calls whose datagrams a queue or a device of this host dropped (ENOBUFS)"},
    base::CounterRow{"send_no_memory", &PathCounters::send_no_memory,
                     "calls whose datagrams were lost because the kernel had no memory (ENOMEM)"},
    base::CounterRow{"send_not_permitted", &PathCounters::send_not_permitted,
                     "calls whose datagrams a firewall rule of this host dropped (EPERM)"},
    base::CounterRow{"send_too_big", &PathCounters::send_too_big,
                     "calls whose datagrams were too long for the path (EMSGSIZE)"},
    base::CounterRow{"send_failed", &PathCounters::send_failed,
                     "calls whose datagrams any other error lost, as on a wire"},
    base::CounterRow{"received_truncated", &PathCounters::received_truncated,
                     "datagrams that were longer than any datagram of the protocol, and dropped"},
};
static_assert(base::are_complete(kPathCounterRows));

}  // namespace fairlead::path
