#pragma once
// Starts the processes of a job from the console.

#include <netinet/in.h>

#include <vector>

#include "doors/amudp/children.hpp"

namespace fairlead::amudp {

/// The environment variable that makes a process a worker: the job's address, or "-" if standard input provides it.
inline constexpr const char* kJobVariable = "FAIRLEAD_AM_JOB";

/// Returns the processes that the spawn functions have started since the last call.
std::vector<Child> take_spawned();
/// Returns our own address on the way to the first of AMUDP_SSH_SERVERS. Ends the process if that is no IP address.
sockaddr_in address_towards_servers();

}  // namespace fairlead::amudp
