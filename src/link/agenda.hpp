#pragma once
// What the link has to do, for whom, and when: peers that are owed a greeting or another word, segments to be sent
// again, peers with something to send, peers whose ACK is due, and each peer's timer.

#include <cstdint>

#include "base/time.hpp"
#include "link/peer.hpp"
#include "link/segment.hpp"

namespace fairlead::link {

struct Agenda {
  PeerList<&Peer::control_hook> control;  // owed a hello, a hello_ack, an answer to a probe or a change of keys
  SegmentList resends;                    // found lost, of all peers
  PeerList<&Peer::ready_hook> ready;      // with something to send, served in turn
  PeerList<&Peer::ack_hook> acks;         // whose ACK is due and found no carrier, or who are probed
  TimerQueue timers;  // by the earliest moment that something of theirs may be due; may be early, never late

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
  /// A segment goes at once, so that the peer knows that we have this session.
  void prove(Peer& peer) {
    peer.ack.is_owed = true;
    answer_at_once(peer);
  }
  /// If the session is open and something waits.
  void make_ready(Peer& peer) {
    if (peer.state == Peer::State::open && !peer.ready_hook.is_linked() && peer.has_queued()) ready.push_back(peer);
  }
  void resend(Segment& segment, ResendCause cause);
  /// Makes sure that the peer is looked at by then.
  void wake_by(Peer& peer, base::Instant at) {
    if (at < peer.timer_at || !peer.timer_hook.is_linked()) [[unlikely]]
      set_timer(peer, at);
  }
  void set_timer(Peer& peer, base::Instant at);
};

}  // namespace fairlead::link
