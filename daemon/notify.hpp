#pragma once
// Tells the one who started us, if that is systemd (Type=notify), that applications may attach.

namespace fairlead::daemon {

/// One datagram to $NOTIFY_SOCKET; nothing without that variable.
void notify_ready();

}  // namespace fairlead::daemon
