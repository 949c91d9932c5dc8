#include "link/acks.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/rare.hpp"
#include "wire/layout.hpp"

namespace fairlead::link {
namespace {

// Sequences that a header reports on: the next one expected, and the 64 of the bitmap.
constexpr std::int32_t kHeaderReach = 65;

std::uint32_t word_count(const wire::Frame& frame) {
  return frame.header.kind == wire::Kind::ack ? static_cast<std::uint32_t>(frame.payload.size() / sizeof(std::uint64_t))
                                              : 0;
}

/// Word 0 is the header's bitmap; the others follow in the payload.
std::uint64_t bitmap_word(const wire::Frame& frame, std::uint32_t index) {
  if (index == 0) return frame.header.ack_bitmap;
  return wire::load<std::uint64_t>(frame.payload.data(), (index - 1) * sizeof(std::uint64_t));
}

// Timestamps wrap. For so long after an echo was measured, an earlier one is told from a later one.
constexpr base::Duration kEchoesCompared = std::chrono::seconds(60);

// After so many segments of the command channel the receiver sends an ACK at once. A sender with so many messages in
// flight waits for outcomes before it sends more, and should not have to wait for all of them.
constexpr std::uint32_t kCommandsToAnswer = 6;

}  // namespace

bool Acks::is_within_sent(const Peer& peer, const wire::Frame& frame) {
  const std::int32_t sent = wire::distance(frame.header.ack, peer.window.next());
  if (sent < 0) return false;
  for (std::uint32_t word = 0; word <= word_count(frame); ++word) {
    const std::uint64_t bits = bitmap_word(frame, word);
    if (bits == 0) continue;
    const std::int32_t highest = 1 + 64 * static_cast<std::int32_t>(word) + 63 - std::countl_zero(bits);
    if (highest >= sent) return false;
  }
  return true;
}

bool Acks::take(Peer& peer, const wire::Frame& frame, base::Instant now) {
  const wire::Header& header = frame.header;
  if (!is_within_sent(peer, frame)) [[unlikely]]
    return false;
  measure(peer, header, now);
  if (wire::distance(peer.window.acked_to(), header.ack) < 0) {
    ++context_.counters.acks_old;
    return true;
  }
  peer.window.set_acked_to(header.ack);
  if (peer.window.in_flight() == 0) return true;

  const std::uint64_t acked_before = context_.counters.segments_acked, in_flight_before = peer.bytes_in_flight;
  const AckEvidence evidence{now, header, peer.order_acked};
  while (wire::distance(peer.window.oldest(), header.ack) > 0)
    on_acked(peer, *peer.window.find(peer.window.oldest()), evidence);
  for (std::uint32_t word = 0; word <= word_count(frame); ++word) {
    for (std::uint64_t bits = bitmap_word(frame, word); bits != 0; bits &= bits - 1) {
      const auto steps = 1 + 64 * word + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (Segment* segment = peer.window.find(header.ack + steps)) on_acked(peer, *segment, evidence);
    }
  }
  const bool tells_all =
      header.kind == wire::Kind::ack || wire::distance(header.ack, peer.window.next()) <= kHeaderReach;
  if (tells_all) peer.order_judged = peer.order_acked;
  peer.ack_reach = header.ack + static_cast<std::uint32_t>(kHeaderReach);
  find_losses(peer, now);
  if (context_.counters.segments_acked == acked_before) {
    ++context_.counters.acks_repeated;
    return true;
  }
  peer.last_progress = now;
  peer.backoff = 0;
  peer.congestion.on_ack(context_.counters.segments_acked - acked_before, in_flight_before - peer.bytes_in_flight,
                         in_flight_before, peer.round_trip.latest(), now);
  context_.agenda.make_ready(peer);
  return true;
}

void Acks::measure(Peer& peer, const wire::Header& header, base::Instant now) {
  if ((header.flags & wire::Flags::kEchoes) == 0) return;
  if ((header.flags & wire::Flags::kDuplicate) != 0) [[unlikely]] {
    ++context_.counters.duplicates_reported;
    // If the threshold triggered the needless resend, this path reorders: widen the reordering window.
    const base::Duration since = wire::elapsed(header.echo, peer.fast_resend_at);
    if (context_.counters.resends_fast != 0 && since >= base::Duration::zero() &&
        since <= 2 * peer.round_trip.smoothed()) {
      peer.reordering.confirm(peer.round_trip.smoothed(), now);
    }
  }
  // Old copies of ACKs and segments measure how long the network, or somebody who records, has kept them.
  if (peer.round_trip.is_known() && now - peer.measured_at < kEchoesCompared &&
      wire::elapsed(peer.echo_measured, header.echo) <= base::Duration::zero())
    return;
  const base::Duration sample = wire::elapsed(header.echo, wire::to_ticks(now)) - wire::to_duration(header.echo_delay);
  if (sample < base::Duration::zero() || sample > context_.options.give_up_after) return;  // not a valid echo
  peer.echo_measured = header.echo;
  peer.measured_at = now;
  peer.round_trip.add(sample);
  ++context_.counters.round_trips_measured;
}

/// Updates what is known about the order of arrival, from the acknowledgement of this segment.
void Acks::learn_order(Peer& peer, const Segment& segment, const AckEvidence& evidence) {
  if (segment.transmissions == 1) [[likely]] {
    if (segment.order < evidence.order_acked) [[unlikely]] {
      peer.reordering.saw(evidence.order_acked - segment.order, evidence.now - segment.sent_at);
    }
    peer.order_acked = std::max(peer.order_acked, segment.order);
    return;
  }
  if (segment.transmissions == 0) return;  // the path has not accepted it yet
  // The last transmission arrived if the echoed segment was sent at the same time or later.
  const wire::Header& header = evidence.header;
  if ((header.flags & wire::Flags::kEchoes) == 0) return;
  if (wire::elapsed(wire::to_ticks(segment.sent_at), header.echo) >= base::Duration::zero()) {
    peer.order_acked = std::max(peer.order_acked, segment.order);
  } else if ((header.flags & wire::Flags::kDuplicate) == 0 && segment.order_before < evidence.order_acked) {
    peer.reordering.suspect(evidence.order_acked - segment.order_before, evidence.now - segment.sent_before);
  }
}

void Acks::on_acked(Peer& peer, Segment& segment, const AckEvidence& evidence) {
  learn_order(peer, segment, evidence);
  if (peer.mtu.is_proven_by(segment.size + peer.tag_bytes)) [[unlikely]] {
    // A segment that was sent in parts proves nothing.
    if (segment.size + peer.tag_bytes <= peer.mtu.size()) peer.mtu.on_proven(evidence.now);
  }
  peer.window.remove(segment);
  peer.bytes_in_flight -= context_.options.charge(segment.size);
  ++context_.counters.segments_acked;
  --context_.counters.segments_in_flight;
  if (segment.block != nullptr) return context_.news.finish(segment, Status::ok);
  Message& message = *segment.message;
  if (--message.segments_unacked == 0 && message.is_cut()) {
    message.hook.unlink();
    --peer.messages_open;
    if (message.slot != Message::kNoSlot) peer.slots_taken &= ~(std::uint64_t{1} << message.slot);
    if (!message.is_void) context_.news.finish(message.cookie, message.wants_outcome, Status::ok);
    context_.messages.give(&message);
  }
  context_.hotel.check_out(segment);
}

void Acks::find_losses(Peer& peer, base::Instant now) {
  peer.loss_at = base::kNever;
  if (peer.in_flight.empty() || peer.in_flight.front().order >= peer.order_acked) [[likely]]
    return;
  const base::Duration round_trip = std::max(peer.round_trip.smoothed(), peer.round_trip.latest());
  const base::Duration patience = peer.reordering.patience(round_trip);
  const std::uint64_t threshold = peer.reordering.positions(context_.options.packet_threshold);
  peer.reordering.fade(peer.order);
  while (!peer.in_flight.empty()) {
    Segment& segment = peer.in_flight.front();
    const bool is_told = wire::distance(segment.sequence, peer.ack_reach) > 0;
    const std::uint64_t arrived = is_told ? peer.order_acked : peer.order_judged;
    if (segment.order >= arrived) return;
    const bool is_overtaken = arrived - segment.order >= threshold || base::rare("link: a gap counts as a loss");
    const bool is_late = peer.round_trip.is_known() && now - segment.sent_at >= patience;
    if (!is_overtaken && !is_late) {
      if (!peer.round_trip.is_known()) return;
      peer.loss_at = segment.sent_at + patience;
      context_.agenda.wake_by(peer, peer.loss_at);
      return;
    }
    peer.congestion.on_loss();
    context_.agenda.resend(segment, ResendCause::fast);
  }
}

void Acks::owe(Peer& peer, const wire::Frame& frame, base::Instant now, bool is_duplicate, AckUrgency urgency) {
  AckDebt& debt = peer.ack;
  // The ACK echoes the last of several segments, but a duplicate has precedence, because it must be reported.
  if (!debt.was_duplicate || is_duplicate) {
    debt.echo = frame.header.timestamp;
    debt.echo_arrived = now;
    debt.has_echo = true;
    debt.was_duplicate = is_duplicate;
  }
  if (std::exchange(debt.is_after_end, urgency == AckUrgency::after_end)) peer.answers_ends = false;
  ++debt.segments;
  if ((frame.header.flags & wire::Flags::kCommand) != 0) ++debt.commands;
  debt.bytes += wire::kSegmentHeaderBytes + frame.payload.size() + context_.options.segment_overhead;
  const bool waits_for_answer = urgency == AckUrgency::after_end && peer.answers_ends;
  const base::Instant due = now + (waits_for_answer ? base::Duration(1) : context_.options.ack_after);
  if (!debt.is_owed || due < debt.due) {
    debt.is_owed = true;
    debt.due = due;
    context_.agenda.wake_by(peer, due);
  }
  const bool is_at_once = urgency == AckUrgency::at_once || (urgency == AckUrgency::after_end && !waits_for_answer);
  if (is_at_once || base::rare("link: an ack goes at once") || debt.segments >= peer.segments_limit[0] / 4 ||
      debt.bytes >= peer.bytes_limit[0] / 4 || debt.commands >= kCommandsToAnswer) {
    debt.is_at_once = true;
    context_.agenda.queue_ack(peer);
  }
}

/// Ends the debt after an ACK was sent. It stays if the header's bitmap is too short: an ACK segment follows.
void Acks::settle(Peer& peer) {
  AckDebt& debt = peer.ack;
  debt.was_duplicate = false;
  if (!debt.is_owed || (debt.is_at_once && peer.received.bitmap_words() > 1)) return;
  debt.is_owed = false;
  debt.is_at_once = false;
  debt.segments = debt.commands = 0;
  debt.bytes = 0;
  peer.ack_hook.unlink();
}

}  // namespace fairlead::link
