#pragma once
// Timers. Each peer has one entry in the agenda's, at the earliest moment that something of it may be due. Deadlines
// that move later leave it where it is: it fires early, finds nothing due and is put where it belongs. So the fast path
// of traffic does not touch the tree, and an idle peer has no entry at all.
//
// A peer that is heard, but brings nothing to an end: it has begun a message and does not go on, or acknowledges
// anything but the oldest that we sent. What we keep for it would be kept for ever; so its session ends `silent`. A
// message of its alone could not end: it would be acknowledged, and thrown away.
//
// Looked at every quarter of give_up_after while something is open. Only looks count, not time: a host that slept must
// not give up on waking.

#include "link/acks.hpp"
#include "link/datagram_sizes.hpp"
#include "link/grants.hpp"
#include "link/key_changes.hpp"
#include "link/link_context.hpp"
#include "link/places.hpp"
#include "link/sessions.hpp"

namespace fairlead::link {

class Expiry {
 public:
  /// What timers set off; all of them outlive it.
  struct Parts {
    Places& places;
    Grants& grants;
    DatagramSizes& sizes;
    Acks& acks;
    KeyChanges& keys;
    Sessions& sessions;
  };
  Expiry(LinkContext& context, const Parts& parts);

  /// As Link::expire() and Link::next_deadline().
  void expire(base::Instant now);
  base::Instant next_deadline() const;

 private:
  bool on_timer(Peer& peer, base::Instant now);
  void on_silence(Peer& peer, base::Instant now);
  void watch_for_stall(Peer& peer, base::Instant now) const;
  bool is_stalled(Peer& peer, base::Instant now) const;

  LinkContext& context_;
  Places& places_;
  Grants& grants_;
  DatagramSizes& sizes_;
  Acks& acks_;
  KeyChanges& keys_;
  Sessions& sessions_;
};

}  // namespace fairlead::link
