#pragma once
// How a console starts the processes of its job.

#include <netinet/in.h>

#include <vector>

#include "doors/amudp/children.hpp"

namespace fairlead::amudp {

/// The environment variable that makes a process a worker: the job's address, or "-" if that comes by its input.
inline constexpr const char* kJobVariable = "FAIRLEAD_AM_JOB";

/// What the spawn functions have started since the last call.
std::vector<Child> take_spawned();
/// Our own address on the way to the first of AMUDP_SSH_SERVERS; ends the process if that is no IP address.
sockaddr_in address_towards_servers();

}  // namespace fairlead::amudp
