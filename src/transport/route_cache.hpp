#pragma once
// Recently used peers by address: a direct-mapped cache. A sender with many destinations finds each as fast as a sender
// with one. Addresses of the same entry evict each other; the transports then look them up.

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/socket_address.hpp"
#include "link/link.hpp"

namespace fairlead::transport {

class RouteCache {
 public:
  /// Returns null if the address is not cached.
  const link::PeerHandle* find(const base::SocketAddress& address) const {
    const Route& route = routes_[place_of(address)];
    return route.address == address && address.port != 0 ? &route.peer : nullptr;
  }
  void keep(const base::SocketAddress& address, link::PeerHandle peer) { routes_[place_of(address)] = {address, peer}; }
  /// Removes a stale handle. Searches all entries, since peers are rarely forgotten.
  void forget(link::PeerHandle peer) {
    for (Route& route : routes_) {
      if (route.peer == peer) route = {};
    }
  }
  /// Removes an address that is reached in another way from now on.
  void forget(const base::SocketAddress& address) {
    Route& route = routes_[place_of(address)];
    if (route.address == address) route = {};
  }

 private:
  static constexpr unsigned kPlaceBits = 9;

  struct alignas(32) Route {  // two in a cache line
    base::SocketAddress address;
    link::PeerHandle peer;
  };

  /// Hashes the address: engines differ in the last bytes of their IP address and in the port, often by one.
  static std::size_t place_of(const base::SocketAddress& address) {
    std::uint32_t last = 0;
    std::memcpy(&last, address.ip.data() + address.ip.size() - sizeof last, sizeof last);
    return ((last ^ address.port) * 0x9e37'79b1U) >> (32 - kPlaceBits);
  }

  std::vector<Route> routes_ = std::vector<Route>(std::size_t{1} << kPlaceBits);
};

}  // namespace fairlead::transport
