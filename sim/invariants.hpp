#pragma once
// Invariants of each host after each turn, and of the whole world at the end. Invariants of single events are checked
// in application_events.cpp and ledger.cpp, those of datagrams in watched_path.cpp.

#include <vector>

#include "sim/flow.hpp"
#include "sim/host.hpp"

namespace fairlead::sim {

/// Checks a host after a turn: books agree, bounds hold.
void check_host(Host& host, std::uint32_t number, Shared shared);

/// Checks that nothing is pending and nothing was kept.
void check_nothing_left(Host& host, std::uint32_t number, Shared shared);
/// Checks that every successful message has arrived or was counted as dropped. Checks that the owner of the memory saw
/// every successful put.
void check_all_arrived(std::vector<Host>& hosts, Shared shared);
/// Checks that faults excuse all errors.
void check_excuses(base::Instant began, Shared shared);
/// Checks the scenario's own expectations.
void check_expectation(std::vector<Host>& hosts, const std::vector<Flow>& flows, base::Instant began, Shared shared);

}  // namespace fairlead::sim
