#pragma once
// The largest datagram that the kernel sends to a peer unfragmented, from the MTU of its route. What the kernel has
// learned by ICMP is left out, since ICMP can be forged: the link probes the path's MTU, and takes ICMP as a hint.
//
// A query takes a scratch socket and some microseconds, so answers are cached in a table of fixed size. Two peers of
// one slot evict each other, which costs time but is never wrong. forget() drops an answer when the kernel refuses a
// size. A wider route is noticed only then, or when a slot is reused.

#include <array>
#include <cstdint>

#include "base/socket_address.hpp"

namespace fairlead::path {

class RouteMtu {
 public:
  /// `local`: the address to which the path is bound; routes may depend on it.
  explicit RouteMtu(const base::SocketAddress& local) : local_(local) {}

  /// Returns UDP payload bytes. The minimum, also without a route, is what every IPv6 host must be able to receive.
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
