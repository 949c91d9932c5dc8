#pragma once
// Who may send how much of long messages, when many send at once (incast). The receiver knows: as long as few senders
// of long messages were heard lately, there is no bound but the windows. With more of them each ACK says "hold" or
// grants a turn, and turns go round: a few senders at a time have one each, so that together they fill the last link,
// but neither its queue nor the socket's buffer. Short messages need no grant and find both short.
//
// A sender that is held back says so on what it sends (kAsks), or by an ACK if it sends nothing. Nothing depends on a
// grant's arrival: one that is not used in time goes to the next, and a sender that hears nothing sends one segment.

#include <cstdint>

#include "base/time.hpp"
#include "link/link_context.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {

class Grants {
 public:
  explicit Grants(LinkContext& context);

  // The receiver's side.
  /// A segment of a long message came.
  void on_bulk(Peer& peer, const wire::Frame& frame, base::Instant now);
  /// It is held back, and wants a turn.
  void on_asked(Peer& peer, base::Instant now);
  void give(base::Instant now);
  /// Its session ends.
  void leave(Peer& peer);
  /// For the next segment to this peer: 0 no bound, 1 hold, else one more than the credits of its turn.
  std::uint16_t credits_for(const Peer& peer) const { return is_crowded() ? credits_in_crowd(peer) : 0; }
  std::uint64_t turn_bytes() const;
  bool is_crowded() const { return senders_ > senders_free_; }
  /// When give() is due; kNever if nobody waits.
  base::Instant deadline() const;

  // The sender's side.
  void take(Peer& peer, std::uint16_t credits, base::Instant now);
  void ask(Peer& peer, base::Instant now);

 private:
  std::uint16_t credits_in_crowd(const Peer& peer) const;
  void end(Peer& peer);
  void forget_quiet_senders(base::Instant now);

  LinkContext& context_;
  // Who sent long messages lately, the latest last; of them those who wait for a grant and who have one.
  PeerList<&Peer::bulk_hook> bulk_;
  PeerList<&Peer::grant_hook> waiting_, given_;
  std::uint32_t senders_ = 0, out_ = 0;
  const std::uint32_t senders_free_;  // so many need no grant
  const std::uint32_t most_;          // at a time
};

}  // namespace fairlead::link
