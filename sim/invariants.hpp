#pragma once
// What must hold of each host after each of its turns, and of the whole world at the end. What has to hold of single
// events stands where they are taken (application_events.cpp, ledger.cpp) and of datagrams in watched_path.cpp.

#include <vector>

#include "sim/flow.hpp"
#include "sim/host.hpp"

namespace fairlead::sim {

/// After a turn of a host: accounts agree, bounds hold.
void check_host(Host& host, std::uint32_t number, Shared shared);

/// Nothing is pending anywhere and nothing was kept.
void check_nothing_left(Host& host, std::uint32_t number, Shared shared);
/// Every message that ended well has arrived, or is among those counted as dropped; every put that ended well was seen
/// by the owner of the memory.
void check_all_arrived(std::vector<Host>& hosts, Shared shared);
/// Errors only where a fault excuses them.
void check_excuses(base::Instant began, Shared shared);
/// What the scenario expects besides.
void check_expectation(std::vector<Host>& hosts, const std::vector<Flow>& flows, base::Instant began, Shared shared);

}  // namespace fairlead::sim
