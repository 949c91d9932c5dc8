// Takes back a train that the path did not accept (back-pressure). Its segments keep their sequences and stay in the
// window, but they never left. So their transmission is undone, and they go to the front of the resend list. A control
// segment's debt is restored too.

#include <algorithm>
#include <utility>

#include "link/trains.hpp"

namespace fairlead::link {
namespace {

constexpr base::Duration kTryAgainAfter = 50us;  // at the latest; any earlier pass of the engine tries again

}  // namespace

void Trains::take_back(const Train& train, base::Instant now) {
  using What = Last::What;
  const What what = std::exchange(last_.what, What::nothing);
  if (what == What::nothing) return;
  --context_.counters.trains_sent;
  ++context_.counters.trains_returned;
  context_.counters.datagrams_sent -= train.datagrams;
  context_.counters.bytes_sent -= train.bytes;
  if (what == What::stray) {
    --strangers_.sent_count(last_.stray.kind);
    strangers_.put(last_.stray);
    return;
  }
  Peer& peer = *last_.peer;
  context_.agenda.wake_by(peer, now + kTryAgainAfter);
  if (what == What::hello || what == What::hello_ack) {
    (what == What::hello ? peer.owes_hello : peer.owes_hello_ack) = true;
    --(what == What::hello ? context_.counters.hellos_sent : context_.counters.hello_acks_sent);
    context_.agenda.owe_word_first(peer);
    return;
  }
  if (what == What::rekey) {
    SealedSession& session = *peer.sealed;
    session.owes_message = true;
    --session.times_sent;
    --(session.is_message_first() ? context_.counters.rekeys_sent : context_.counters.rekey_answers_sent);
    context_.agenda.owe_word_first(peer);
    return;
  }
  if (what == What::probe_answer) {
    peer.probes_to_answer[peer.probe_answers_owed++] = last_.probe;
    --context_.counters.probe_answers_sent;
    context_.agenda.owe_word_first(peer);
    return;
  }
  peer.ack = last_.debt;
  if (peer.ack.is_at_once) context_.agenda.queue_ack_first(peer);
  if (what == What::data) return take_back_data(peer, train);
  if (what == What::parts) return take_back_parts(peer, train);
  if (what == What::probe) {
    --context_.counters.probes_sent;
    peer.mtu.want_again(last_.probe_bytes);
    context_.agenda.queue_ack_first(peer);
    return;
  }
  --context_.counters.acks_sent;
}

void Trains::undo_transmission(Segment& segment) {
  segment.hook.unlink();
  segment.cause = ResendCause::returned;
  segment.is_waiting = true;
  --segment.transmissions;
  segment.order = segment.order_before;
  segment.sent_at = segment.sent_before;
  context_.agenda.resends.push_front(segment);
  --segment.peer->order;
}

void Trains::take_back_parts(Peer& peer, const Train& train) {
  context_.counters.parts_sent -= train.datagrams;
  Segment& segment = *last_.segment;
  if (!segment.is_waiting) undo_transmission(segment);
  segment.cause = ResendCause::returned;
  segment.parts_sent = last_.parts_before;
  peer.last_sent = std::max(last_.last_sent, peer.last_progress);
}

void Trains::take_back_data(Peer& peer, const Train& train) {
  for (std::uint32_t i = 0; i < train.datagrams; ++i) undo_transmission(peer.in_flight.back());
  // Otherwise a path that never takes anything would look like a peer that was just sent something.
  peer.last_sent = std::max(last_.last_sent, peer.last_progress);
}

}  // namespace fairlead::link
