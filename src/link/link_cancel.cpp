// Messages are taken back. A short one only before it is sent: it is a copy, so nobody has to wait for it. A long one
// always: its bytes are the caller's, who wants them back whatever the peer does.
//
// The segments that it is cut into have their sequences, and what is behind them must not be held up. So they stay in
// the window without their bytes; where one is sent again, a void one goes in its place. The peer throws away what it
// has of the message, unless it has all. Where not all was cut, a void segment more says so.

#include "link/link_state.hpp"
#include "link/reference.hpp"

namespace fairlead::link {

bool Link::State::cancel(PeerHandle handle, Reference reference, std::uint64_t cookie) {
  Peer* const peer = peers.find(handle);
  if (peer == nullptr || reference == 0) return false;
  handed_out.what = HandedOut::What::nothing;
  if (Segment* const segment = segment_of(reference)) return cancel_embedded(*peer, *segment, cookie);
  Message& message = *message_of(reference);
  if (!message.hook.is_linked() || message.cookie != cookie || message.is_void) return false;
  message.pieces = {};
  finish(message.cookie, message.wants_outcome, Status::canceled);
  if (message.bytes_cut == 0) {
    message.hook.unlink();
    --peer->messages_open;
    messages.give(&message);
    return true;
  }
  message.is_void = true;
  if (!message.is_cut()) {
    message.hook.unlink();
    peer->messages.push_front(message);
    make_ready(*peer);
  }
  return true;
}

/// If it waits in that segment to be sent for the first time.
bool Link::State::cancel_embedded(Peer& peer, Segment& segment, std::uint64_t cookie) {
  const bool is_queued = segment.block != nullptr && segment.peer == &peer && segment.hook.is_linked() &&
                         segment.transmissions == 0 && !segment.is_waiting;
  bool is_wanted = false;
  if (!is_queued || !segment.take_out(cookie, is_wanted)) return false;
  const auto channel = static_cast<std::size_t>(segment.channel);
  --peer.queued_messages[channel];
  if (segment.records == 0) {
    --peer.queued_segments[channel];
    hotel.check_out(segment);
  }
  finish(cookie, is_wanted, Status::canceled);
  return true;
}

}  // namespace fairlead::link
