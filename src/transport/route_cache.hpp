#pragma once
// The peers that were asked for lately, by address: a direct-mapped cache, so that a sender with many destinations
// finds each as fast as a sender with one. Addresses that share a place push each other out; then the transports look
// them up.

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/socket_address.hpp"
#include "link/link.hpp"

namespace fairlead::transport {

class RouteCache {
 public:
  /// Null if it is not known here.
  const link::PeerHandle* find(const base::SocketAddress& address) const {
    const Route& route = routes_[place_of(address)];
    return route.address == address && address.port != 0 ? &route.peer : nullptr;
  }
  void keep(const base::SocketAddress& address, link::PeerHandle peer) { routes_[place_of(address)] = {address, peer}; }
  /// The handle is stale. Looks at all places: peers are forgotten seldom.
  void forget(link::PeerHandle peer) {
    for (Route& route : routes_) {
      if (route.peer == peer) route = {};
    }
  }
  /// The address is reached another way from now on.
  void forget(const base::SocketAddress& address) {
    Route& route = routes_[place_of(address)];
    if (route.address == address) route = {};
  }

 private:
  static constexpr unsigned kPlaceBits = 9;

  struct Route {
    base::SocketAddress address;
    link::PeerHandle peer;
  };

  /// Engines differ in the last bytes of their IP address and in the port, often by one.
  static std::size_t place_of(const base::SocketAddress& address) {
    std::uint32_t last = 0;
    std::memcpy(&last, address.ip.data() + address.ip.size() - sizeof last, sizeof last);
    return ((last ^ address.port) * 0x9e37'79b1U) >> (32 - kPlaceBits);
  }

  std::vector<Route> routes_ = std::vector<Route>(std::size_t{1} << kPlaceBits);
};

}  // namespace fairlead::transport
