// A train that the path did not take. Its segments have their sequences and stay in the window, but were never on the
// way: their transmission is undone, and they wait first on the resend list. Another train's ACK was not carried
// either.

#include <algorithm>
#include <utility>

#include "link/link_state.hpp"

namespace fairlead::link {
namespace {

constexpr base::Duration kTryAgainAfter = 50us;  // at the latest; any pass of the engine tries

}  // namespace

void Link::State::take_back(const Train& train, base::Instant now) {
  using What = HandedOut::What;
  const What what = std::exchange(handed_out.what, What::nothing);
  if (what == What::nothing) return;
  --counters.trains_sent;
  ++counters.trains_returned;
  counters.datagrams_sent -= train.datagrams;
  counters.bytes_sent -= train.bytes;
  if (what == What::stray) {
    --sent_count(handed_out.stray.kind);
    strays.push(handed_out.stray);
    return;
  }
  Peer& peer = *handed_out.peer;
  wake_by(peer, now + kTryAgainAfter);
  if (what == What::hello || what == What::hello_ack) {
    (what == What::hello ? peer.owes_hello : peer.owes_hello_ack) = true;
    --(what == What::hello ? counters.hellos_sent : counters.hello_acks_sent);
    if (!peer.control_hook.is_linked()) control.push_front(peer);
    return;
  }
  if (what == What::rekey) {
    SealedSession& session = *peer.sealed;
    session.owes_message = true;
    --session.times_sent;
    --(session.is_message_first() ? counters.rekeys_sent : counters.rekey_answers_sent);
    if (!peer.control_hook.is_linked()) control.push_front(peer);
    return;
  }
  if (what == What::probe_answer) {
    peer.probes_to_answer[peer.probe_answers_owed++] = handed_out.probe;
    --counters.probe_answers_sent;
    if (!peer.control_hook.is_linked()) control.push_front(peer);
    return;
  }
  peer.ack = handed_out.debt;
  if (peer.ack.is_at_once && !peer.ack_hook.is_linked()) acks.push_front(peer);
  if (what == What::data) return take_back_data(peer, train);
  if (what == What::parts) return take_back_parts(peer, train);
  if (what == What::probe) {
    --counters.probes_sent;
    peer.mtu.want_again(handed_out.probe_bytes);
    if (!peer.ack_hook.is_linked()) acks.push_front(peer);
    return;
  }
  --counters.acks_sent;
}

void Link::State::undo_transmission(Segment& segment) {
  segment.hook.unlink();
  segment.cause = ResendCause::returned;
  segment.is_waiting = true;
  --segment.transmissions;
  segment.order = segment.order_before;
  segment.sent_at = segment.sent_before;
  resends.push_front(segment);
  --segment.peer->order;
}

void Link::State::take_back_parts(Peer& peer, const Train& train) {
  counters.parts_sent -= train.datagrams;
  Segment& segment = *handed_out.segment;
  if (!segment.is_waiting) undo_transmission(segment);
  segment.cause = ResendCause::returned;
  segment.parts_sent = handed_out.parts_before;
  peer.last_sent = std::max(handed_out.last_sent, peer.last_progress);
}

void Link::State::take_back_data(Peer& peer, const Train& train) {
  for (std::uint32_t i = 0; i < train.datagrams; ++i) undo_transmission(peer.in_flight.back());
  // Else a path that never takes anything would look like a peer that has just been written to.
  peer.last_sent = std::max(handed_out.last_sent, peer.last_progress);
}

}  // namespace fairlead::link
