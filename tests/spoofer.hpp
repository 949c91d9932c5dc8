#pragma once
// Sends UDP datagrams over the loopback with forged sender addresses, as an off-path attacker can. Answers go to the
// forged addresses. Needs a raw socket.

#include <cstddef>
#include <span>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"

namespace fairlead::tests {

class Spoofer {
 public:
  Spoofer();
  /// Whether this process may open a raw socket.
  bool is_permitted() const { return socket_.is_open(); }

  /// IPv4 only.
  void send(const base::SocketAddress& from, const base::SocketAddress& to, std::span<const std::byte> datagram);

 private:
  base::FileDescriptor socket_;
};

}  // namespace fairlead::tests
