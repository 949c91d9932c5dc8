#include "link/datagram_sizes.hpp"

#include <algorithm>

#include "base/rare.hpp"
#include "wire/layout.hpp"

namespace fairlead::link {

void DatagramSizes::set_goal(Peer& peer, base::Instant now) {
  std::uint32_t size = std::min(peer.path_datagram_max, context_.options.datagram_size_max);
  if (peer.state != Peer::State::open) {
    peer.datagram_size = std::max(size, PathMtu::kLeast) - context_.tag_bytes_at_most;
    return;
  }
  size = std::min(size, peer.theirs.datagram_size_max);
  peer.mtu.set_goal(size, now);
  follow(peer, now);
}

/// Segments in flight that are too long for a smaller size are resent in parts.
void DatagramSizes::follow(Peer& peer, base::Instant now) {
  if (peer.mtu.wanted() != 0) context_.agenda.queue_ack(peer);
  if (const base::Instant at = peer.mtu.due(); at != base::kNever)
    context_.agenda.wake_by(peer, std::max(at, now + base::Duration(1)));
  const std::uint32_t size = peer.mtu.size() - peer.tag_bytes;
  if (size == peer.datagram_size) return;
  const bool is_lower = size < peer.datagram_size;
  ++(is_lower ? context_.counters.sizes_lowered : context_.counters.sizes_raised);
  peer.datagram_size = size;
  if (!is_lower) return;
  for (auto next = peer.in_flight.begin(); next != peer.in_flight.end();) {
    Segment& segment = *next++;
    if (segment.size > size) context_.agenda.resend(segment, ResendCause::recut);
  }
}

void DatagramSizes::on_timer(Peer& peer, base::Instant now) {
  peer.mtu.on_timer(std::min(context_.timeouts.answer_after(peer), context_.options.resend_after_max), now);
  follow(peer, now);
}

void DatagramSizes::on_probe(Peer& peer, const wire::Frame& frame) {
  ++context_.counters.probes_received;
  peer.longest_probe =
      std::max(peer.longest_probe, static_cast<std::uint32_t>(wire::kSegmentHeaderBytes + frame.payload.size()));
  // Answers the newest probes only: the peer has given older ones up by now.
  peer.probes_to_answer[peer.probe_answers_owed % peer.probes_to_answer.size()] = frame.header.sequence;
  peer.probe_answers_owed =
      std::min<std::uint32_t>(peer.probe_answers_owed + 1, static_cast<std::uint32_t>(peer.probes_to_answer.size()));
  context_.agenda.owe_word(peer);
}

void DatagramSizes::on_probe_answer(Peer& peer, const wire::Frame& frame, base::Instant now) {
  ++context_.counters.probe_answers_received;
  if (base::rare("link: a probe's answer is overheard")) return;
  peer.mtu.on_answer(frame.header.sequence, now);
  follow(peer, now);
}

}  // namespace fairlead::link
