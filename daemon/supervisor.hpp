#pragma once
// The interface to a supervisor that uses systemd's protocol. It may pass a listening socket, wants to know when
// applications can attach, and restarts a daemon that stops sending keep-alives.
// Source: sd_notify(3), sd_listen_fds(3), sd_watchdog_enabled(3).

#include <string_view>

#include "base/file_descriptor.hpp"
#include "base/time.hpp"

namespace fairlead::daemon {

/// Returns the first of the sockets that the supervisor passed to this process, with close-on-exec set; a closed
/// descriptor if there is none. Call once.
base::FileDescriptor take_inherited_socket();

/// Sends a datagram such as "READY=1" to $NOTIFY_SOCKET. Does nothing without that variable, and ignores errors.
void notify(std::string_view state);

/// Returns the longest permitted time between two notify("WATCHDOG=1"); zero if the supervisor does not expect them.
base::Duration watchdog_period();

}  // namespace fairlead::daemon
