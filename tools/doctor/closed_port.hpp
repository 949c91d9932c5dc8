#pragma once
// Tells whether UDP arrives at a host whose engine does not answer. The host's kernel answers a datagram to a port that
// no program has by ICMP. A firewall that drops UDP seldom drops that answer, too.

#include "base/socket_address.hpp"

namespace fairlead::tools {

/// Sends a few datagrams of one byte to ports of the host that programs hardly use. Returns whether an ICMP message
/// refused one of them. Takes at most 1.5 s.
bool is_refused_at_closed_port(const base::SocketAddress& host);

}  // namespace fairlead::tools
