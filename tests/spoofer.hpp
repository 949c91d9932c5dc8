#pragma once
// Sends UDP datagrams over the loopback in anybody's name, as somebody off the path may; what is answered goes to those
// whose name it was. It needs a raw socket.

#include <cstddef>
#include <span>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"

namespace fairlead::tests {

class Spoofer {
 public:
  Spoofer();
  /// Whether this process may.
  bool is_permitted() const { return socket_.is_open(); }

  /// IPv4 only.
  void send(const base::SocketAddress& from, const base::SocketAddress& to, std::span<const std::byte> datagram);

 private:
  base::FileDescriptor socket_;
};

}  // namespace fairlead::tests
