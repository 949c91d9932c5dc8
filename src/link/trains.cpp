#include "link/trains.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/rare.hpp"
#include "link/acks.hpp"

namespace fairlead::link {
namespace {

constexpr base::Duration kEchoFreshFor = 100ms;
constexpr base::Duration kMemoryAfter = 1ms;  // retry after an allocation failed
constexpr std::int64_t kTurnBytes = 16'384;   // of one peer in one round, as the kernel charges them

void clear(Train& train) {
  train.datagram_size = 0;
  train.datagrams = 0;
  train.bytes = 0;
  train.piece_count = 0;
}

/// Returns whether the train is complete: its last segment is shorter than the others, or it has no space for the
/// pieces of another one.
bool is_ended(const Train& train) {
  return train.bytes < train.datagrams * train.datagram_size ||
         train.piece_count + Segment::kPiecesMax + 1 > Train::kPiecesInTrain;
}

/// Returns whether a segment of this size, with this many pieces besides its head, may join the train.
bool has_place(const Train& train, std::uint32_t size, std::uint32_t pieces, std::uint32_t bytes_max,
               std::uint32_t datagrams_max) {
  if (train.datagrams == 0) return true;
  return train.datagrams < datagrams_max && size <= train.datagram_size && train.bytes + size <= bytes_max &&
         train.piece_count + std::min(pieces, Segment::kPiecesMax) + 1 <= Train::kPiecesInTrain;
}

}  // namespace

Trains::Trains(LinkContext& context, const Parts& parts)
    : context_(context),
      strangers_(parts.strangers),
      greetings_(parts.greetings),
      grants_(parts.grants),
      source_(parts.source),
      sealer_(parts.sealer) {}

bool Trains::next(base::Instant now, std::uint32_t bytes_max, std::uint32_t datagrams_max, Train& train) {
  clear(train);
  forget_last();
  if (!context_.agenda.control.empty() && serve_control(now, train)) [[unlikely]]
    return true;
  if (!strangers_.is_empty() && !std::exchange(was_stray_, false)) [[unlikely]]
    return serve_stray(now, train);
  if (!context_.agenda.resends.empty() && (resends_in_a_row_ < context_.options.resends_in_a_row ||
                                           context_.agenda.resends.front().cause == ResendCause::returned))
      [[unlikely]] {
    serve_resends(now, bytes_max, datagrams_max, train);
    return true;
  }
  resends_in_a_row_ = 0;
  while (!context_.agenda.ready.empty()) {
    Peer& peer = context_.agenda.ready.front();
    context_.agenda.ready.pop_front();
    const bool is_alone = context_.agenda.ready.empty();
    if (!is_alone && !begin_turn(peer)) {
      context_.agenda.ready.push_back(peer);
      continue;
    }
    const bool is_served = serve_peer(peer, now, bytes_max, datagrams_max, train);
    const bool is_hotel_full = context_.hotel.is_full();
    if (is_served && !is_alone)
      peer.turn_bytes -= static_cast<std::int64_t>(context_.options.charge(train.bytes, train.datagrams));
    if (!is_served || is_alone || !peer.has_queued()) peer.turn_bytes = std::min<std::int64_t>(peer.turn_bytes, 0);
    const bool is_ready_again = peer.ready_hook.is_linked();  // the path's MTU has become smaller
    if (peer.has_queued() && (is_served || is_hotel_full) && !is_ready_again) {
      if (peer.turn_bytes > 0) {
        context_.agenda.ready.push_front(peer);
      } else {
        context_.agenda.ready.push_back(peer);
      }
    }
    if (is_served) return true;
    if (is_hotel_full) {  // any peer's ACK makes room
      if (context_.hotel.lacks_memory()) context_.agenda.wake_by(peer, now + kMemoryAfter);
      break;
    }
  }
  if (!context_.agenda.acks.empty()) {
    serve_ack(context_.agenda.acks.front(), now, train);
    return true;
  }
  if (context_.agenda.resends.empty()) return serve_stray(now, train);
  serve_resends(now, bytes_max, datagrams_max, train);
  return true;
}

/// Deficit round robin: each round lets a peer send kTurnBytes more. A peer whose train was longer sits out until that
/// is made good. Bounded: each visit brings a peer's turn nearer, and a train owes a few rounds at most.
bool Trains::begin_turn(Peer& peer) {
  if (peer.turn_bytes <= 0) peer.turn_bytes += kTurnBytes;
  return peer.turn_bytes > 0;
}

bool Trains::serve_peer(Peer& peer, base::Instant now, std::uint32_t bytes_max, std::uint32_t datagrams_max,
                        Train& train) {
  const base::Instant last_sent = peer.last_sent;
  bytes_max = TrainSealer::bytes_before_tags(peer, bytes_max, datagrams_max);
  const wire::Header base = header_with_ack(peer, now);
  const bool is_bulk_due = peer.is_bulk_due();
  if (!is_bulk_due) [[likely]]
    add_queued(peer, Channel::command, base, now, bytes_max, datagrams_max, train);
  const bool are_commands = train.datagrams != 0;
  const bool is_paced = train.datagrams == 0 && peer.congestion.is_congested();
  if (is_paced) [[unlikely]] {
    if (!is_bulk_due && peer.has_bulk_queued() && !peer.pacer.may_send(now)) {
      context_.agenda.wake_by(peer, peer.pacer.next());
      return false;
    }
    bytes_max = std::min(bytes_max, Pacer::burst(peer.congestion.rate(), peer.datagram_size));
  }
  if (train.datagrams == 0) add_queued(peer, Channel::data, base, now, bytes_max, datagrams_max, train);
  if (train.datagrams == 0) {
    add_cut(peer, base, now, bytes_max, datagrams_max, train);
    if (train.datagrams != 0 && peer.ack.is_after_end) peer.answers_ends = true;
  }
  peer.commands_in_a_row = are_commands           ? peer.commands_in_a_row + 1
                           : train.datagrams != 0 ? 0
                                                  : peer.commands_in_a_row;
  if (is_bulk_due && train.datagrams == 0)
    add_queued(peer, Channel::command, base, now, bytes_max, datagrams_max, train);
  if (is_paced) [[unlikely]] {
    if (train.datagrams != 0)
      peer.pacer.on_sent(context_.options.charge(train.bytes, train.datagrams), peer.congestion.rate(),
                         peer.round_trip.smoothed(), now);
    if (train.datagrams == 0) peer.pacer.on_blocked();
  }
  if (train.datagrams == 0) {
    if (peer.granted != Peer::kNoBound) [[unlikely]]
      grants_.ask(peer, now);
    return false;
  }
  note(Last::What::data, peer);
  last_.last_sent = last_sent;
  end_train(peer, now, train);
  return true;
}

void Trains::end_train(Peer& peer, base::Instant now, Train& train) {
  train.to = peer.address;
  context_.counters.window_segments_most =
      std::max<std::uint64_t>(context_.counters.window_segments_most, peer.window.in_flight());
  context_.counters.window_bytes_most = std::max(context_.counters.window_bytes_most, peer.bytes_in_flight);
  peer.ack.is_after_end = false;
  Acks::settle(peer);
  ++context_.counters.trains_sent;
  context_.agenda.wake_by(peer, now + context_.timeouts.probe_after(peer));
  if (peer.sealed) [[unlikely]]
    sealer_.seal(peer, now, train);
}

/// Adds waiting segments of short messages, in their order.
void Trains::add_queued(Peer& peer, Channel channel, const wire::Header& base, base::Instant now,
                        std::uint32_t bytes_max, std::uint32_t datagrams_max, Train& train) {
  while (train.datagrams < datagrams_max && !is_ended(train)) {
    const std::uint32_t size_max = train.datagrams == 0 ? ~0U : std::min(train.datagram_size, bytes_max - train.bytes);
    Segment* segment = source_.take_queued(peer, channel, size_max);
    if (segment == nullptr || !add_fresh(*segment, base, now, train)) return;
  }
}

void Trains::add_cut(Peer& peer, const wire::Header& base, base::Instant now, std::uint32_t bytes_max,
                     std::uint32_t datagrams_max, Train& train) {
  if (train.datagrams == 0) bytes_max = SegmentSource::train_bytes(peer, bytes_max, datagrams_max);
  while (train.datagrams < datagrams_max && !is_ended(train)) {
    const std::uint32_t size = train.datagrams == 0 ? peer.datagram_size : train.datagram_size;
    const std::uint32_t left = bytes_max - train.bytes;
    const bool is_last = train.datagrams + 1 == datagrams_max || left < 2 * size ||
                         train.piece_count + 2 * (Segment::kPiecesMax + 1) > Train::kPiecesInTrain ||
                         !source_.is_open_for_two(peer, size);
    Segment* const segment = source_.cut_next(peer, train, is_last, left);
    if (segment == nullptr || !add_fresh(*segment, base, now, train)) return;
  }
}

/// Adds a segment that was never sent; returns false if the train ends before it.
bool Trains::add_fresh(Segment& segment, const wire::Header& base, base::Instant now, Train& train) {
  Peer& peer = *segment.peer;
  if (peer.window.in_flight() == 0) peer.last_progress = now;
  peer.window.put(segment);
  peer.bytes_in_flight += context_.options.charge(segment.size);
  ++context_.counters.segments_sent;
  ++context_.counters.segments_in_flight;
  if (segment.size > peer.datagram_size) [[unlikely]] {  // the path's MTU has become smaller since the segment was cut
    context_.agenda.resend(segment, ResendCause::returned);
    context_.agenda.make_ready(peer);
    return false;
  }
  transmit(segment, base, now, train);
  return true;
}

void Trains::serve_resends(base::Instant now, std::uint32_t bytes_max, std::uint32_t datagrams_max, Train& train) {
  Peer& peer = *context_.agenda.resends.front().peer;
  bytes_max = TrainSealer::bytes_before_tags(peer, bytes_max, datagrams_max);
  const base::Instant last_sent = peer.last_sent;
  const wire::Header base = header_with_ack(peer, now);
  note(Last::What::data, peer);
  last_.last_sent = last_sent;
  empty_if_void(context_.agenda.resends.front());
  if (context_.agenda.resends.front().size > peer.datagram_size) [[unlikely]] {
    last_.what = Last::What::parts;
    serve_parts(context_.agenda.resends.front(), base, now, bytes_max, datagrams_max, train);
  }
  while (!context_.agenda.resends.empty() && last_.what == Last::What::data) {
    Segment& segment = context_.agenda.resends.front();
    empty_if_void(segment);
    if (segment.size > peer.datagram_size) break;
    if (segment.peer != &peer || !has_place(train, segment.size, segment.piece_count, bytes_max, datagrams_max)) break;
    if (train.datagrams != 0 && resends_in_a_row_ >= context_.options.resends_in_a_row &&
        segment.cause != ResendCause::returned) {
      break;
    }
    segment.hook.unlink();
    segment.is_waiting = false;
    wire::Header header = base;
    if (segment.cause != ResendCause::returned) count_resend(segment, header);
    transmit(segment, header, now, train);
    if (segment.size < train.datagram_size) break;
  }
  // A few lost segments do not fill a train. New segments to this peer join them, if no other peer has to wait for it.
  if (last_.what == Last::What::data && context_.agenda.resends.empty() && is_alone_ready(peer))
    add_cut(peer, base, now, bytes_max, datagrams_max, train);
  end_train(peer, now, train);
}

/// Drops the payload of a segment whose message was taken back.
void Trains::empty_if_void(Segment& segment) {
  if (segment.message == nullptr || !segment.message->is_void || segment.payload_bytes == 0) [[likely]]
    return;
  Peer& peer = *segment.peer;
  peer.bytes_in_flight -= context_.options.charge(segment.size);
  segment.make_void();
  peer.bytes_in_flight += context_.options.charge(segment.size);
  ++context_.counters.voids_sent;
}

bool Trains::is_alone_ready(const Peer& peer) const {
  return !context_.agenda.ready.empty() && &context_.agenda.ready.front() == &peer &&
         &context_.agenda.ready.back() == &peer;
}

void Trains::count_resend(const Segment& segment, wire::Header& header) {
  if (segment.cause == ResendCause::fast) {
    ++context_.counters.resends_fast;
    segment.peer->fast_resend_at = header.timestamp;
  } else if (segment.cause == ResendCause::recut) {
    ++context_.counters.resends_recut;
  } else {
    ++(segment.cause == ResendCause::probe ? context_.counters.resends_probe : context_.counters.resends_timeout);
    header.flags |= wire::Flags::kAnswerAtOnce;
  }
  ++context_.counters.resends;
  ++resends_in_a_row_;
}

/// Completes the header for this transmission and adds the segment to the train.
void Trains::transmit(Segment& segment, const wire::Header& base, base::Instant now, Train& train) {
  wire::Header header = base;
  header.kind = wire::Kind::data;
  if (segment.channel == Channel::command) header.flags |= wire::Flags::kCommand;
  if (segment.peer->granted != Peer::kNoBound && segment.peer->has_bulk_queued()) [[unlikely]]
    header.flags |= wire::Flags::kAsks;
  header.sequence = segment.sequence;

  const std::size_t first_piece = train.piece_count;
  std::byte* head = segment.block != nullptr ? segment.block->bytes.data() : segment.head.data();
  const std::uint32_t head_bytes = segment.block != nullptr ? segment.size : segment.head_bytes;
  train.add(head, head_bytes);
  std::uint32_t left = segment.payload_bytes;
  std::uint64_t skip = segment.piece_offset;
  for (std::uint32_t i = 0; i < segment.piece_count; ++i) {
    const iovec& piece = segment.message->pieces[segment.piece + i];
    const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(piece.iov_len - skip, left));
    if (length != 0) train.add(static_cast<std::byte*>(piece.iov_base) + skip, length);
    skip = 0;
    left -= length;
  }
  wire::encode(header, head);
  if (!segment.peer->sealed) [[likely]]
    wire::add_checksum({head, head_bytes}, {train.pieces + first_piece + 1, train.piece_count - first_piece - 1});

  if (train.datagrams == 0) train.datagram_size = segment.size;
  ++train.datagrams;
  train.bytes += segment.size;
  ++context_.counters.datagrams_sent;
  context_.counters.bytes_sent += segment.size;

  note_transmission(segment, now);
}

void Trains::note_transmission(Segment& segment, base::Instant now) {
  Peer& peer = *segment.peer;
  if (++segment.transmissions != 1) [[unlikely]] {
    segment.order_before = segment.order;
    segment.sent_before = segment.sent_at;
  }
  segment.order = ++peer.order;
  segment.sent_at = now;
  peer.last_sent = now;
  peer.in_flight.push_back(segment);
}

wire::Header Trains::header_with_ack(const Peer& peer, base::Instant now) const {
  wire::Header header;
  header.slot = peer.theirs.slot;
  header.token = peer.theirs.token;
  header.sequence = peer.window.next();
  header.ack = peer.received.next();
  header.ack_bitmap = peer.received.bitmap(0);
  header.timestamp = wire::to_ticks(now);
  header.credits = grants_.credits_for(peer);
  // An echo that waited long measures the drift of two clocks rather than the path.
  if (peer.ack.has_echo && now - peer.ack.echo_arrived <= kEchoFreshFor) {
    header.flags |= wire::Flags::kEchoes;
    if (peer.ack.was_duplicate) header.flags |= wire::Flags::kDuplicate;
    header.echo = peer.ack.echo;
    header.echo_delay = wire::to_ticks(now - peer.ack.echo_arrived);
  }
  return header;
}

}  // namespace fairlead::link
