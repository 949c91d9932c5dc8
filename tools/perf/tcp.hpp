#pragma once
// TCP sockets for the control channel between hosts: blocking, without delay, and with probes of an idle connection, so
// that a host that has vanished is noticed within 20 s.

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"

namespace fairlead::tools {

Result<base::FileDescriptor> connect_tcp(const base::SocketAddress& server, Duration at_most);

/// Listens at an address. The unspecified IPv6 address takes IPv4, too.
Result<base::FileDescriptor> listen_tcp(const base::SocketAddress& address);
struct TcpClient {
  base::FileDescriptor socket;
  base::SocketAddress from;
};
/// Returns `again` if no client waits, `system` if this host lacks a descriptor or memory.
Result<TcpClient> accept_tcp(int listener);

/// Returns the local address of a connected socket.
Result<base::SocketAddress> own_address(int socket);

}  // namespace fairlead::tools
