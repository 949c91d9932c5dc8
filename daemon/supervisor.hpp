#pragma once
// The process that started us, if it is systemd or speaks its protocol: it may hand over a socket that listens already,
// wants to know when applications can attach, and restarts a daemon that stops telling that it lives.
// Source: sd_notify(3), sd_listen_fds(3), sd_watchdog_enabled(3).

#include <string_view>

#include "base/file_descriptor.hpp"
#include "base/time.hpp"

namespace fairlead::daemon {

/// The first of the sockets that were handed over to this process; closed if there is none. It is not inherited by
/// children. Once.
base::FileDescriptor take_inherited_socket();

/// One datagram to $NOTIFY_SOCKET, as "READY=1"; nothing without that variable.
void notify(std::string_view state);

/// The longest time between two notify("WATCHDOG=1"); zero if nobody waits for them.
base::Duration watchdog_period();

}  // namespace fairlead::daemon
