#pragma once
// Chooses the peers that deserve a connected socket: the busiest of late. A newcomer replaces the least busy one only
// when it is clearly busier, so that two equals do not take turns.

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

  /// Counts one arrival from a peer; tells what changes, at most once in kPeriod arrivals.
  Change count(std::uint32_t peer_slot, const base::SocketAddress& address);
  /// The peer is gone; its place is free. Where it was, if it had one.
  std::optional<base::SocketAddress> forget(std::uint32_t peer_slot);

 private:
  static constexpr std::uint32_t kPromoteAfter = 16;  // arrivals of late before a free place is given
  static constexpr std::uint32_t kPeriod = 4096;      // arrivals after which the past counts half

  struct Hot {
    std::uint32_t peer_slot;
    base::SocketAddress address;
  };

  std::size_t places_;
  std::vector<std::uint32_t> arrivals_;  // by peer slot, halved every kPeriod
  std::vector<Hot> hot_;
  std::uint32_t since_halving_ = 0;
};

}  // namespace fairlead::transport
