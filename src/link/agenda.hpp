#pragma once
// The link's work lists. They hold the peers that are owed a control segment, segments to be resent, peers with data to
// send, peers whose ACK is due, and each peer's timer.

#include <cstdint>

#include "base/time.hpp"
#include "link/peer.hpp"
#include "link/segment.hpp"

namespace fairlead::link {

struct Agenda {
  PeerList<&Peer::control_hook> control;  // owed a hello, a hello_ack, a probe answer or a rekey message
  SegmentList resends;                    // segments found lost, of all peers
  PeerList<&Peer::ready_hook> ready;      // have data to send; served in turn
  PeerList<&Peer::ack_hook> acks;         // owed an ACK that found no carrier, or due for an MTU probe
  TimerQueue timers;  // ordered by the earliest possible deadline of each peer; may fire early, never late

  void owe_word(Peer& peer) {
    if (!peer.control_hook.is_linked()) control.push_back(peer);
  }
  void owe_word_first(Peer& peer) {
    if (!peer.control_hook.is_linked()) control.push_front(peer);
  }
  void queue_ack(Peer& peer) {
    if (!peer.ack_hook.is_linked()) acks.push_back(peer);
  }
  void queue_ack_first(Peer& peer) {
    if (!peer.ack_hook.is_linked()) acks.push_front(peer);
  }
  void answer_at_once(Peer& peer) {
    peer.ack.is_at_once = true;
    queue_ack(peer);
  }
  /// Sends a segment at once, so that the peer learns that this side has the session.
  void prove(Peer& peer) {
    peer.ack.is_owed = true;
    answer_at_once(peer);
  }
  /// Queues the peer for sending if its session is open and data waits.
  void make_ready(Peer& peer) {
    if (peer.state == Peer::State::open && !peer.ready_hook.is_linked() && peer.has_queued()) ready.push_back(peer);
  }
  void resend(Segment& segment, ResendCause cause);
  /// Makes sure that the peer's timer fires no later than `at`.
  void wake_by(Peer& peer, base::Instant at) {
    if (at < peer.timer_at || !peer.timer_hook.is_linked()) [[unlikely]]
      set_timer(peer, at);
  }
  void set_timer(Peer& peer, base::Instant at);
};

}  // namespace fairlead::link
