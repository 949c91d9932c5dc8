#pragma once
// The largest datagram that the kernel would send to a peer unfragmented, from its route; not what it has learned of
// that by ICMP, which anybody can forge: the link finds the path's MTU by itself, and takes hints for it. Asking takes
// a scratch socket and some microseconds, so the answers are kept, in a table of fixed size: two peers of one slot push
// each other out, which costs time but is never wrong. A kept answer is dropped when the kernel refuses a size
// (forget); that a route has become wider is noticed only then or when a slot is reused.

#include <array>
#include <cstdint>

#include "base/socket_address.hpp"

namespace fairlead::path {

class RouteMtu {
 public:
  /// `local`: the address that the path is bound to; routes may depend on it.
  explicit RouteMtu(const base::SocketAddress& local) : local_(local) {}

  /// UDP payload bytes; at least, and without a route, what every IPv6 host must be able to receive.
  std::uint32_t datagram_size_max(const base::SocketAddress& peer);
  void forget(const base::SocketAddress& peer);

 private:
  struct Answer {
    base::SocketAddress peer;
    std::uint32_t datagram_size = 0;
  };

  Answer& slot(const base::SocketAddress& peer);

  base::SocketAddress local_;
  base::SocketAddressHash hash_;
  std::array<Answer, 256> answers_{};
};

}  // namespace fairlead::path
