#pragma once
// Receiver credits against incast: how much of long messages each sender may have in flight when many send at once. As
// long as few peers have recently sent long messages, only the windows limit them. With more senders, each ACK says
// "hold" or grants a turn, and turns rotate. A few senders at a time hold one turn each. Together they fill the last
// link, but neither its queue nor the socket's buffer. Short messages need no grant.
//
// A sender that is held back asks for a turn by a flag on its segments (kAsks), or by an ACK if it sends nothing. Lost
// grants do no harm: an unused grant goes to the next sender, and a sender that hears nothing sends one segment.

#include <cstdint>

#include "base/time.hpp"
#include "link/link_context.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {

class Grants {
 public:
  explicit Grants(LinkContext& context);

  // Receiver's side.
  /// Counts a segment of a long message from this peer, and charges its grant.
  void on_bulk(Peer& peer, const wire::Frame& frame, base::Instant now);
  /// Queues the peer for a turn, after it said that it is held back.
  void on_asked(Peer& peer, base::Instant now);
  void give(base::Instant now);
  /// Forgets the peer when its session ends.
  void leave(Peer& peer);
  /// The credits field of the next segment to this peer: 0 for no limit, 1 for hold, else 1 + the credits of its turn.
  std::uint16_t credits_for(const Peer& peer) const { return is_crowded() ? credits_in_crowd(peer) : 0; }
  std::uint64_t turn_bytes() const;
  bool is_crowded() const { return senders_ > senders_free_; }
  /// When give() is due; kNever if no peer waits.
  base::Instant deadline() const;

  // Sender's side.
  void take(Peer& peer, std::uint16_t credits, base::Instant now);
  void ask(Peer& peer, base::Instant now);

 private:
  std::uint16_t credits_in_crowd(const Peer& peer) const;
  void end(Peer& peer);
  void forget_quiet_senders(base::Instant now);

  LinkContext& context_;
  // Peers that recently sent long messages, the latest last; and those of them that wait for a grant or hold one.
  PeerList<&Peer::bulk_hook> bulk_;
  PeerList<&Peer::grant_hook> waiting_, given_;
  std::uint32_t senders_ = 0, out_ = 0;
  const std::uint32_t senders_free_;  // up to so many senders need no grant
  const std::uint32_t most_;          // grants held at a time
};

}  // namespace fairlead::link
