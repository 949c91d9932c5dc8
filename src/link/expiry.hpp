#pragma once
// Timers. Each peer has one entry in the agenda's ordered set, at its earliest possible deadline. A deadline that moves
// later leaves the entry in place: the timer fires early, finds nothing due and is set again. So the fast path does not
// touch the set, and an idle peer has no entry. The timer of an ACK is an exception: it is the shortest one, and an
// answer usually carries the ACK before it fires. A thread that sleeps between two messages would wake for it, and
// short sleeps are expensive in virtual machines. So next_deadline() sets it again.
//
// Stalled peers. A peer may be heard and yet finish nothing: it does not continue a message that it has begun, or it
// acknowledges everything but the oldest segment. It would hold resources for ever, so its session ends with `silent`.
// Dropping only the unfinished message would not suffice: it would be acknowledged, and yet lost.
//
// While something is open, the peer is checked every quarter of give_up_after. Checks are counted, not time, so that a
// host that was suspended does not give its peers up when it wakes.

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
  /// What the timers call; all of it outlives this object.
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
  base::Instant next_deadline();

 private:
  bool is_timer_of_settled_ack(const Peer& peer) const;
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
