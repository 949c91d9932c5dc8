#pragma once
// Places in the table of peers, and which peers give way when it is full. Opening a session again costs no more than
// keeping a long unused one is worth. So it may be forgotten; the link tells its peer, and nothing is lost.
//
//   long unused    (forget_after): forgotten when others come, a few at a time; no thread wakes for it
//   table full     The host with most peers gives way: first its peers that were unused for give_up_after.
//                  If none is unused, a host gives way that holds more than an eighth of the table, and more than
//                  twice as many places as the newcomer's host. Only messages of ours keep its peers.
//   half open      Hellos with a cookie are bounded. The host with most of them gives way, its oldest first.
//
// A peer is forgotten when the engine fetches the notice (next_notice), not before. Until then its handle is valid, and
// if it is used after all it stays.

#include <cstdint>

#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "link/host_shares.hpp"
#include "link/link_context.hpp"
#include "link/peer_table.hpp"
#include "link/token_source.hpp"

namespace fairlead::link {

class Places {
 public:
  Places(LinkContext& context, PeerTable& peers, TokenSource& secrets);

  /// Adds a peer; returns null if the table is full. Throws if there is no memory, and then nothing has changed.
  Peer* add(const base::SocketAddress& address, base::Instant now);
  /// Adds a peer in a slot of the caller's choice. Returns null also if the slot or the address is taken.
  Peer* add_at(std::uint32_t slot, std::uint32_t generation, const base::SocketAddress& address, base::Instant now);
  /// Keeps a peer that was about to be forgotten. Without memory for that it stays until its session ends, and gives
  /// way to no other peer.
  void keep(Peer& peer) noexcept;
  /// Forgets a few peers that were unused for forget_after.
  void sweep(base::Instant now);
  /// Returns whether the table is nearly full.
  bool is_scarce() const;
  /// Returns whether this address's host holds half of the table.
  bool is_half_held_by(const base::SocketAddress& address) const;
  /// Lets an unused peer go, to make room for this address. If there is none, but a host holds too much, returns a peer
  /// of that host: the caller ends its session before it lets the peer go.
  Peer* make_room(const base::SocketAddress& address, base::Instant now);
  /// Queues the notice that the peer is forgotten; the engine may still keep it.
  void let_go(Peer& peer);
  /// Returns whether forgetting the peer would lose nothing of this side.
  static bool is_free_of_us(const Peer& peer);

  /// Stores a candidate of the peer.
  void offer(Peer& peer, Peer::Candidate candidate);
  void drop_candidate(Peer& peer);
  /// Removes the peer at once.
  void forget(Peer& peer);

 private:
  Peer* keep_new(Peer* peer, base::Instant now);
  void make_room_half_open(const base::SocketAddress& address);

  LinkContext& context_;
  PeerTable& peers_;
  HostShares<Peer, &Peer::place_hook> places_;         // all peers except those about to be forgotten
  HostShares<Peer, &Peer::half_open_hook> half_open_;  // peers with a candidate
  std::uint32_t swept_ = 0;                            // the slot that sweep() checked last
};

}  // namespace fairlead::link
