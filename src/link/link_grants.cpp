// Who may send how much of long messages, when many send at once (incast). The receiver knows: as long as few senders
// of long messages were heard lately, there is no bound but the windows. With more of them each ACK says "hold" or
// grants a turn, and turns go round: a few senders at a time have one each, so that together they fill the last link,
// but neither its queue nor the socket's buffer. Short messages need no grant and find both short.
//
// A sender that is held back says so on what it sends (kAsks), or by an ACK if it sends nothing. Nothing depends on a
// grant's arrival: one that is not used in time goes to the next, and a sender that hears nothing sends one segment.

#include <algorithm>

#include "base/rare.hpp"
#include "link/link_state.hpp"

namespace fairlead::link {
namespace {

constexpr base::Duration kRemembered = 10ms;  // a sender of long messages
constexpr base::Duration kUsedWithin = 1ms;   // a grant
constexpr std::uint64_t kCreditBytes = 1024;

}  // namespace

std::uint64_t Link::State::turn_bytes() const {
  const std::uint32_t senders = std::clamp(bulk_senders, 1U, grants_most);
  return std::min<std::uint64_t>(options.granted_bytes / (is_crowded() ? senders : grants_most), 65'000);
}

std::uint16_t Link::State::credits_for(const Peer& peer) const {
  return peer.grant == Peer::Grant::given ? static_cast<std::uint16_t>(turn_bytes() / kCreditBytes + 1) : 1;
}

// The receiver's side ------------------------------------------------------------------------------------------------

/// A segment of a long message came.
void Link::State::on_bulk(Peer& peer, const wire::Frame& frame, base::Instant now) {
  peer.bulk_at = now;
  if (bulk.empty() || &bulk.back() != &peer) {
    if (!peer.bulk_hook.is_linked()) ++bulk_senders;
    peer.bulk_hook.unlink();
    bulk.push_back(peer);
  }
  if (!is_crowded()) [[likely]]
    return;
  if (peer.grant == Peer::Grant::given) {
    const auto size =
        static_cast<std::int64_t>(frame.payload.size() + wire::kSegmentHeaderBytes + options.segment_overhead);
    peer.grant_left -= size;
    const bool asks = (frame.header.flags & wire::Flags::kAsks) != 0;
    if (peer.grant_left < size || !asks) {  // another one would not fit
      end_grant(peer);
      if (asks) on_asked(peer, now);
    }
  }
  give_grants(now);
}

void Link::State::on_asked(Peer& peer, base::Instant now) {
  if (!is_crowded()) {  // then there is nothing to wait for
    peer.ack.is_at_once = true;
    if (!peer.ack_hook.is_linked()) acks.push_back(peer);
    return;
  }
  if (peer.grant != Peer::Grant::none) return;
  peer.grant = Peer::Grant::waiting;
  grants_waiting.push_back(peer);
  give_grants(now);
}

void Link::State::give_grants(base::Instant now) {
  forget_quiet_senders(now);
  while (!grants_given.empty() && now - grants_given.front().granted_at >= kUsedWithin) {
    ++counters.grants_expired;
    end_grant(grants_given.front());
  }
  while (!grants_waiting.empty() && (grants_out < grants_most || !is_crowded())) {
    Peer& next = grants_waiting.front();
    grants_waiting.pop_front();
    next.grant = Peer::Grant::none;
    if (is_crowded()) {
      next.grant = Peer::Grant::given;
      next.granted_at = now;
      next.grant_left = static_cast<std::int64_t>(turn_bytes());
      grants_given.push_back(next);
      ++grants_out;
      ++counters.grants_given;
    }
    if (base::rare("link: a grant is not told")) continue;
    next.ack.is_at_once = true;
    if (!next.ack_hook.is_linked()) acks.push_back(next);
  }
}

void Link::State::end_grant(Peer& peer) {
  peer.grant_hook.unlink();
  peer.grant = Peer::Grant::none;
  --grants_out;
}

void Link::State::forget_quiet_senders(base::Instant now) {
  while (!bulk.empty() && now - bulk.front().bulk_at >= kRemembered) {
    bulk.pop_front();
    --bulk_senders;
  }
}

void Link::State::leave_grants(Peer& peer) {
  if (peer.bulk_hook.is_linked()) --bulk_senders;
  peer.bulk_hook.unlink();
  if (peer.grant == Peer::Grant::given) --grants_out;
  peer.grant_hook.unlink();
  peer.grant = Peer::Grant::none;
  peer.granted = Peer::kNoBound;
  peer.has_asked = false;
}

/// Only while somebody waits: a grant that is not used, or the crowd that has gone.
base::Instant Link::State::grants_deadline() const {
  if (grants_waiting.empty()) return base::kNever;
  base::Instant at = bulk.front().bulk_at + kRemembered;
  if (!grants_given.empty()) at = std::min(at, grants_given.front().granted_at + kUsedWithin);
  return at;
}

// The sender's side --------------------------------------------------------------------------------------------------

void Link::State::take_grant(Peer& peer, std::uint16_t credits, base::Instant now) {
  peer.granted = credits == 0 ? Peer::kNoBound : (credits - 1) * kCreditBytes;
  if (peer.granted != 0) peer.has_asked = false;
  make_ready(peer);
  if (peer.granted == 0 && peer.has_bulk_queued()) ask_for_grant(peer, now);
}

/// What waits is held back, and nothing on its way can say so.
void Link::State::ask_for_grant(Peer& peer, base::Instant now) {
  if (peer.has_asked || peer.window.in_flight() != 0 || !peer.has_bulk_queued() || peer.granted != 0) return;
  peer.has_asked = true;
  peer.asked_at = now;
  ++counters.turns_asked;
  peer.ack.is_at_once = true;
  if (!peer.ack_hook.is_linked()) acks.push_back(peer);
  wake_by(peer, now + ask_again_after(peer));
}

}  // namespace fairlead::link
