#pragma once
// Parting: a connection ends although both engines live on, so that one of them can be replaced (docs/shm.md).
//
// Order. The side that wants to part tells the other one. Both begin nothing new here, and finish what is under way. A
// side that has finished says so. When both have, one closes the connection: everything that was written is read.

#include <cstdint>
#include <utility>
#include <vector>

#include "base/fifo.hpp"
#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "link/link.hpp"
#include "shm/connections.hpp"
#include "shm/search.hpp"
#include "shm/transport_peer.hpp"

namespace fairlead::shm {

class Partings {
 public:
  /// `is_forced`: there is no other way to the peers, so this side does not part.
  Partings(Connections& connections, TransportPeers& peers, Search& search, base::Fifo<link::Notice>& notices,
           bool is_forced)
      : connections_(connections), peers_(peers), search_(search), notices_(notices), is_forced_(is_forced) {}

  /// Begins to part from all peers, and admits none; or admits them again. What has begun does not stop any more.
  void want(bool is_wanted);
  bool is_wanted() const noexcept { return is_wanted_; }
  bool has_any() const noexcept { return count_ != 0; }
  bool has(const base::SocketAddress& address) const {
    const std::uint32_t index = count_ == 0 ? TransportPeers::kNone : peers_.find(address);
    return index != TransportPeers::kNone && peers_[index].is_parting;
  }
  base::Instant next_deadline(base::Instant now) const noexcept { return has_any() ? now + kEvery : base::kNever; }
  /// Parts from those peers for which is_done(peer) returns true: the engine has nothing under way for them.
  template <typename IsDone>
  void part_if(IsDone&& is_done) {
    for (std::uint32_t index = 0; index < peers_.size(); ++index) {
      if (!peers_[index].is_parting) continue;
      ask(index);
      if (has_read_all(index) && is_done(peers_.handle_of(index))) go_apart(index);
    }
  }
  /// Returns the peers from which this side has parted since want(), and forgets them.
  std::vector<base::SocketAddress> take_parted() { return std::exchange(parted_, {}); }
  const std::vector<base::SocketAddress>& parted() const noexcept { return parted_; }

  // For the transport: a peer is added, opens, asks, has said that it is done, is lost, or has parted.
  void make_room() { parted_.reserve(peers_.size() + 1); }
  void begin(std::uint32_t index);
  void take_request(std::uint32_t connection_slot);
  void take_done(std::uint32_t connection_slot);
  void note_lost(std::uint32_t index) noexcept { count_ -= peers_[index].is_parting ? 1 : 0; }
  /// Forgets the peer, with a notice.
  void end(std::uint32_t index, base::Instant now);
  /// Ends the process if an invariant is violated.
  void check() const;

 private:
  static constexpr base::Duration kEvery = std::chrono::milliseconds(5);

  void ask(std::uint32_t index);
  bool has_read_all(std::uint32_t index);
  void go_apart(std::uint32_t index);

  Connections& connections_;
  TransportPeers& peers_;
  Search& search_;
  base::Fifo<link::Notice>& notices_;
  const bool is_forced_;
  bool is_wanted_ = false;
  std::uint32_t count_ = 0;                  // of peers that part
  std::vector<base::SocketAddress> parted_;  // since want()
};

}  // namespace fairlead::shm
