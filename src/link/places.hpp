#pragma once
// Who has a place in the table of peers, and who gives way. A session that nobody has used for long is worth no more
// than what it costs to open the next one, so it may be forgotten: its peer is told, and nothing is lost.
//
//   long unused    (forget_after): forgotten when others come, a few at a time; nobody is woken for it
//   table full     the host that holds most gives way, its peers in turn, those first that were unused for
//   give_up_after.
//                  One that holds an eighth of the table cannot keep its places by using them, unless for messages of
//                  ours
//   half open      as many hellos with a cookie as fit; the host that has most of them gives way, its oldest first
//
// A peer is forgotten when the engine is told of it (next_notice), not before: until then its handle is good, and if it
// is used after all it stays.

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

  /// Null if the table is full. Where there is no memory it throws, and nothing has changed.
  Peer* add(const base::SocketAddress& address, base::Instant now);
  /// The same at a place of the caller's choice; null also if that, or the address, is taken.
  Peer* add_at(std::uint32_t slot, std::uint32_t generation, const base::SocketAddress& address, base::Instant now);
  /// Again. Without memory for that it stays until its session ends, and gives way to nobody.
  void keep(Peer& peer) noexcept;
  /// A few of those that nobody has used for long go.
  void sweep(base::Instant now);
  /// A place is wanted for one more.
  bool is_scarce() const;
  /// The host holds half of the table.
  bool is_half_held_by(const base::SocketAddress& address) const;
  /// For a peer at this address, one that is unused is let go. If there is none but one whose host holds too much, that
  /// one is returned: its session is to be ended before it is let go.
  Peer* make_room(const base::SocketAddress& address, base::Instant now);
  /// The engine is told, and may still keep it.
  void let_go(Peer& peer);
  /// Nothing of ours would be lost with it.
  static bool is_free_of_us(const Peer& peer);

  /// It has, or will have, a candidate.
  void offer(Peer& peer, Peer::Candidate candidate);
  void drop_candidate(Peer& peer);
  /// Gone at once.
  void forget(Peer& peer);

 private:
  Peer* keep_new(Peer* peer, base::Instant now);
  void make_room_half_open(const base::SocketAddress& address);

  LinkContext& context_;
  PeerTable& peers_;
  HostShares<Peer, &Peer::place_hook> places_;         // peers, but those about to be forgotten
  HostShares<Peer, &Peer::half_open_hook> half_open_;  // peers with a candidate
  std::uint32_t swept_ = 0;                            // the place looked at last for one long unused
};

}  // namespace fairlead::link
