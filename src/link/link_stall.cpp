// A peer that is heard, but brings nothing to an end: it has begun a message and does not go on, or acknowledges
// anything but the oldest that we sent. What we keep for it would be kept for ever; so its session ends `silent`. A
// message of its alone could not end: it would be acknowledged, and thrown away.
//
// Looked at every quarter of give_up_after while something is open. Only looks count, not time: a host that slept must
// not give up on waking.

#include "link/link_state.hpp"

namespace fairlead::link {
namespace {

constexpr std::uint8_t kStallLooks = 4;  // in give_up_after

}  // namespace

/// Begins with the first that is open, and ends with the last.
void Link::State::watch_for_stall(Peer& peer, base::Instant now) const {
  if (peer.window.in_flight() == 0 && peer.reassembly.open_count() == 0) {
    peer.stall_look_at = base::kNever;
  } else if (peer.stall_look_at == base::kNever) {
    peer.stall_look_at = now + options.give_up_after / kStallLooks;
    peer.oldest_seen = peer.window.oldest();
    peer.stalled_looks = 0;
  }
}

/// Whether nothing of one of them has moved for so many looks.
bool Link::State::is_stalled(Peer& peer, base::Instant now) const {
  if (peer.stall_look_at > now) return false;
  peer.stall_look_at = now + options.give_up_after / kStallLooks;
  const bool is_same = peer.window.in_flight() != 0 && peer.window.oldest() == peer.oldest_seen;
  peer.oldest_seen = peer.window.oldest();
  peer.stalled_looks = is_same ? static_cast<std::uint8_t>(peer.stalled_looks + 1) : 0;
  peer.is_message_stuck = peer.reassembly.look() > kStallLooks;  // the first look may have come at once
  return peer.is_message_stuck || peer.stalled_looks >= kStallLooks;
}

}  // namespace fairlead::link
