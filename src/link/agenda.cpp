#include "link/agenda.hpp"

namespace fairlead::link {

void Agenda::resend(Segment& segment, ResendCause cause) {
  segment.hook.unlink();
  if (segment.size + segment.peer->tag_bytes > PathMtu::kLeast && cause != ResendCause::recut)
    segment.peer->mtu.on_lost(segment.transmissions, segment.sent_at);
  segment.cause = cause;
  segment.is_waiting = true;
  resends.push_back(segment);
}

void Agenda::set_timer(Peer& peer, base::Instant at) {
  peer.timer_hook.unlink();
  peer.timer_at = at;
  timers.insert(peer);
}

}  // namespace fairlead::link
