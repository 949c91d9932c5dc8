#pragma once
// Chooses the peers that get a connected socket: the busiest of late. A newcomer replaces the least busy one only if it
// is four times busier, so that two equal peers do not alternate.
//
// Each socket is polled, so they pay only while few peers are busy. If a newcomer finds no free place, and is about as
// busy as a peer that has one, all places are given up, until few peers are busy again.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/socket_address.hpp"

namespace fairlead::transport {

class HotPeers {
 public:
  explicit HotPeers(std::size_t places, std::uint32_t peers_max = 1) : places_(places) {
    arrivals_.reserve(places == 0 ? 0 : peers_max);
    hot_.reserve(places);
  }

  struct Change {
    std::optional<base::SocketAddress> cooled, heated;
  };

  /// Counts one arrival from a peer, and returns what changes. A peer is considered at every kPromoteAfter-th arrival.
  Change count(std::uint32_t peer_slot, const base::SocketAddress& address);
  /// Forgets a peer that is gone. Returns its address if it had a place, which is free now.
  std::optional<base::SocketAddress> forget(std::uint32_t peer_slot);

 private:
  static constexpr std::uint32_t kPromoteAfter = 16;  // arrivals (halved over time) between two decisions on a peer
  static constexpr std::uint32_t kPeriod = 4096;      // after so many arrivals all counts are halved
  static constexpr std::uint32_t kClearly = 4;        // times as many arrivals: clearly busier

  struct Hot {
    std::uint32_t peer_slot;
    base::SocketAddress address;
  };

  Change give_up_one();
  std::size_t busy_peers() const;

  std::size_t places_;
  std::vector<std::uint32_t> arrivals_;  // indexed by peer slot
  std::vector<Hot> hot_;
  std::uint32_t since_halving_ = 0;
  bool is_crowded_ = false;  // more peers are busy than there are places
};

}  // namespace fairlead::transport
