// What goes out now. Order of service: greetings, a word to a stranger, resends (so many in a row), peers with
// something to send in turn, ACKs that found no carrier. A train is several segments of one peer and one size; only its
// last may be shorter.
//
// Ready peers share by bytes (deficit round robin), so a peer of short trains gets as much as one of long ones, and a
// lone message waits for one round at most. A peer that is ready alone is served without any account.
//
// A peer on whose path a queue was found is paced (pacer.hpp): its long messages wait for their time, others do not.

#include <algorithm>
#include <bit>
#include <utility>

#include "base/rare.hpp"
#include "link/link_state.hpp"

namespace fairlead::link {
namespace {

constexpr base::Duration kEchoFreshFor = 100ms;
constexpr base::Duration kMemoryAfter = 1ms;  // there was none
constexpr std::int64_t kTurnBytes = 16'384;   // of one peer in one round, as the kernel charges them

void clear(Train& train) {
  train.datagram_size = 0;
  train.datagrams = 0;
  train.bytes = 0;
  train.piece_count = 0;
}

void add_piece(Train& train, void* base, std::size_t length) {
  train.pieces[train.piece_count++] = {base, length};
}

/// Whether a segment of this size, with this many pieces besides its head, may join.
bool has_place(const Train& train, std::uint32_t size, std::uint32_t pieces, std::uint32_t bytes_max,
               std::uint32_t datagrams_max) {
  if (train.datagrams == 0) return true;
  return train.datagrams < datagrams_max && size <= train.datagram_size && train.bytes + size <= bytes_max &&
         train.piece_count + std::min(pieces, Segment::kPiecesMax) + 1 <= Train::kPiecesInTrain;
}

}  // namespace

bool Link::State::next_train(base::Instant now, std::uint32_t bytes_max, std::uint32_t datagrams_max, Train& train) {
  clear(train);
  handed_out.what = HandedOut::What::nothing;
  if (!control.empty() && serve_control(now, train)) [[unlikely]]
    return true;
  if (!strays.empty() && !std::exchange(was_stray, false)) [[unlikely]]
    return serve_stray(now, train);
  if (!resends.empty() &&
      (resends_in_a_row < options.resends_in_a_row || resends.front().cause == ResendCause::returned)) [[unlikely]] {
    serve_resends(now, bytes_max, datagrams_max, train);
    return true;
  }
  resends_in_a_row = 0;
  while (!ready.empty()) {
    Peer& peer = ready.front();
    ready.pop_front();
    const bool is_alone = ready.empty();
    if (!is_alone && !begin_turn(peer)) {
      ready.push_back(peer);
      continue;
    }
    const bool is_served = serve_peer(peer, now, bytes_max, datagrams_max, train);
    const bool is_hotel_full = hotel.is_full();
    if (is_served && !is_alone) peer.turn_bytes -= static_cast<std::int64_t>(charge(train));
    if (!is_served || is_alone || !peer.has_queued()) peer.turn_bytes = std::min<std::int64_t>(peer.turn_bytes, 0);
    const bool is_ready_again = peer.ready_hook.is_linked();  // the path had become narrower
    if (peer.has_queued() && (is_served || is_hotel_full) && !is_ready_again) {
      if (peer.turn_bytes > 0) {
        ready.push_front(peer);
      } else {
        ready.push_back(peer);
      }
    }
    if (is_served) return true;
    if (is_hotel_full) {  // any peer's ACK makes room
      if (hotel.lacks_memory()) wake_by(peer, now + kMemoryAfter);
      break;
    }
  }
  if (!acks.empty()) {
    serve_ack(acks.front(), now, train);
    return true;
  }
  if (resends.empty()) return serve_stray(now, train);
  serve_resends(now, bytes_max, datagrams_max, train);
  return true;
}

/// Deficit round robin: each round lets a peer send kTurnBytes more; a train that was longer is made good by sitting
/// out. Bounded: every look at a peer brings its turn nearer, and a train owes a few rounds at most.
bool Link::State::begin_turn(Peer& peer) {
  if (peer.turn_bytes <= 0) peer.turn_bytes += kTurnBytes;
  return peer.turn_bytes > 0;
}

void Link::State::make_ready(Peer& peer) {
  if (peer.state == Peer::State::open && !peer.ready_hook.is_linked() && peer.has_queued()) ready.push_back(peer);
}

bool Link::State::is_open_for(const Peer& peer, Channel channel, std::uint32_t size) const {
  // Whatever the limits are, one may always go; but who is held back waits for his turn.
  if (peer.window.in_flight() == 0) return channel == Channel::command || peer.granted != 0;
  if (base::rare("link: the window looks full")) [[unlikely]]
    return false;
  // When it is the turn of long messages, short ones leave them a part of the window.
  const auto index = static_cast<std::size_t>(peer.is_bulk_due() ? Channel::data : channel);
  if (channel == Channel::data && peer.bytes_in_flight + size + options.segment_overhead > peer.granted) [[unlikely]]
    return false;
  return peer.window.span() < peer.segments_limit[index] &&
         peer.bytes_in_flight + size + options.segment_overhead <=
             std::min(peer.bytes_limit[index], peer.congestion.bytes());
}

bool Link::State::serve_peer(Peer& peer, base::Instant now, std::uint32_t bytes_max, std::uint32_t datagrams_max,
                             Train& train) {
  const base::Instant last_sent = peer.last_sent;
  bytes_max = bytes_before_tags(peer, bytes_max, datagrams_max);
  const wire::Header base = header_with_ack(peer, now);
  const bool is_bulk_due = peer.is_bulk_due();
  if (!is_bulk_due) [[likely]]
    add_queued(peer, Channel::command, base, now, bytes_max, datagrams_max, train);
  const bool are_commands = train.datagrams != 0;
  const bool is_paced = train.datagrams == 0 && peer.congestion.is_congested();
  if (is_paced) [[unlikely]] {
    if (!is_bulk_due && peer.has_bulk_queued() && !peer.pacer.may_send(now)) {
      wake_by(peer, peer.pacer.next());
      return false;
    }
    bytes_max = std::min(bytes_max, Pacer::burst(peer.congestion.rate(), peer.datagram_size));
  }
  if (train.datagrams == 0) add_queued(peer, Channel::data, base, now, bytes_max, datagrams_max, train);
  if (train.datagrams == 0) add_cut(peer, base, now, bytes_max, datagrams_max, train);
  peer.commands_in_a_row = are_commands           ? peer.commands_in_a_row + 1
                           : train.datagrams != 0 ? 0
                                                  : peer.commands_in_a_row;
  if (is_bulk_due && train.datagrams == 0)
    add_queued(peer, Channel::command, base, now, bytes_max, datagrams_max, train);
  if (is_paced) [[unlikely]] {
    if (train.datagrams != 0)
      peer.pacer.on_sent(charge(train), peer.congestion.rate(), peer.round_trip.smoothed(), now);
    if (train.datagrams == 0) peer.pacer.on_blocked();
  }
  if (train.datagrams == 0) {
    if (peer.granted != Peer::kNoBound) [[unlikely]]
      ask_for_grant(peer, now);
    return false;
  }
  hand_out(HandedOut::What::data, peer);
  handed_out.last_sent = last_sent;
  end_train(peer, now, train);
  return true;
}

void Link::State::end_train(Peer& peer, base::Instant now, Train& train) {
  train.to = peer.address;
  counters.window_segments_most = std::max<std::uint64_t>(counters.window_segments_most, peer.window.in_flight());
  counters.window_bytes_most = std::max(counters.window_bytes_most, peer.bytes_in_flight);
  settle_ack(peer);
  ++counters.trains_sent;
  wake_by(peer, now + probe_after(peer));
  if (peer.sealed) [[unlikely]]
    seal_train(peer, now, train);
}

/// Short messages that wait in segments of their own, in their order.
void Link::State::add_queued(Peer& peer, Channel channel, const wire::Header& base, base::Instant now,
                             std::uint32_t bytes_max, std::uint32_t datagrams_max, Train& train) {
  while (train.datagrams < datagrams_max && !is_ended(train)) {
    const std::uint32_t size_max = train.datagrams == 0 ? ~0U : std::min(train.datagram_size, bytes_max - train.bytes);
    Segment* segment = take_queued(peer, channel, size_max);
    if (segment == nullptr || !add_fresh(*segment, base, now, train)) return;
  }
}

/// A segment that was never sent; false if the train ends before it.
bool Link::State::add_fresh(Segment& segment, const wire::Header& base, base::Instant now, Train& train) {
  Peer& peer = *segment.peer;
  if (peer.window.in_flight() == 0) peer.last_progress = now;
  peer.window.put(segment);
  peer.bytes_in_flight += charge(segment);
  ++counters.segments_sent;
  ++counters.segments_in_flight;
  if (segment.size > peer.datagram_size) [[unlikely]] {  // the path has become narrower while it waited
    resend(segment, ResendCause::returned);
    make_ready(peer);
    return false;
  }
  transmit(segment, base, now, train);
  return true;
}

Segment* Link::State::take_queued(Peer& peer, Channel channel, std::uint32_t size_max) {
  const auto index = static_cast<std::size_t>(channel);
  SegmentList& queue = peer.queued[index];
  if (queue.empty()) return nullptr;
  Segment& segment = queue.front();
  if (segment.size > size_max || !is_open_for(peer, channel, segment.size)) return nullptr;
  segment.hook.unlink();
  peer.queued_messages[index] -= segment.records;
  --peer.queued_segments[index];
  counters.whole_sent += segment.records;
  return &segment;
}

void Link::State::serve_resends(base::Instant now, std::uint32_t bytes_max, std::uint32_t datagrams_max, Train& train) {
  Peer& peer = *resends.front().peer;
  bytes_max = bytes_before_tags(peer, bytes_max, datagrams_max);
  const base::Instant last_sent = peer.last_sent;
  const wire::Header base = header_with_ack(peer, now);
  hand_out(HandedOut::What::data, peer);
  handed_out.last_sent = last_sent;
  // What was taken back has no bytes any more.
  const auto empty = [&](Segment& segment) {
    if (segment.message == nullptr || !segment.message->is_void || segment.payload_bytes == 0) [[likely]]
      return;
    peer.bytes_in_flight -= charge(segment);
    segment.make_void();
    peer.bytes_in_flight += charge(segment);
    ++counters.voids_sent;
  };
  empty(resends.front());
  if (resends.front().size > peer.datagram_size) [[unlikely]] {
    handed_out.what = HandedOut::What::parts;
    serve_parts(resends.front(), base, now, bytes_max, datagrams_max, train);
  }
  while (!resends.empty() && handed_out.what == HandedOut::What::data) {
    Segment& segment = resends.front();
    empty(segment);
    if (segment.size > peer.datagram_size) break;
    if (segment.peer != &peer || !has_place(train, segment.size, segment.piece_count, bytes_max, datagrams_max)) break;
    if (train.datagrams != 0 && resends_in_a_row >= options.resends_in_a_row &&
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
  // A few lost segments make no train. What else goes to this peer goes with them, if nobody else has to wait for it.
  if (handed_out.what == HandedOut::What::data && resends.empty() && is_alone_ready(peer))
    add_cut(peer, base, now, bytes_max, datagrams_max, train);
  end_train(peer, now, train);
}

bool Link::State::is_alone_ready(const Peer& peer) const {
  return !ready.empty() && &ready.front() == &peer && &ready.back() == &peer;
}

void Link::State::count_resend(const Segment& segment, wire::Header& header) {
  if (segment.cause == ResendCause::fast) {
    ++counters.resends_fast;
    segment.peer->fast_resend_at = header.timestamp;
  } else if (segment.cause == ResendCause::recut) {
    ++counters.resends_recut;
  } else {
    ++(segment.cause == ResendCause::probe ? counters.resends_probe : counters.resends_timeout);
    header.flags |= wire::Flags::kAnswerAtOnce;
  }
  ++counters.resends;
  ++resends_in_a_row;
}

/// Completes the header for this transmission and hangs the segment to the train.
void Link::State::transmit(Segment& segment, const wire::Header& base, base::Instant now, Train& train) {
  wire::Header header = base;
  header.kind = wire::Kind::data;
  if (segment.channel == Channel::command) header.flags |= wire::Flags::kCommand;
  if (segment.peer->granted != Peer::kNoBound && segment.peer->has_bulk_queued()) [[unlikely]]
    header.flags |= wire::Flags::kAsks;
  header.sequence = segment.sequence;

  const std::size_t first_piece = train.piece_count;
  std::byte* head = segment.block != nullptr ? segment.block->bytes.data() : segment.head.data();
  const std::uint32_t head_bytes = segment.block != nullptr ? segment.size : segment.head_bytes;
  add_piece(train, head, head_bytes);
  std::uint32_t left = segment.payload_bytes;
  std::uint64_t skip = segment.piece_offset;
  for (std::uint32_t i = 0; i < segment.piece_count; ++i) {
    const iovec& piece = segment.message->pieces[segment.piece + i];
    const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(piece.iov_len - skip, left));
    if (length != 0) add_piece(train, static_cast<std::byte*>(piece.iov_base) + skip, length);
    skip = 0;
    left -= length;
  }
  wire::encode(header, head);
  if (!segment.peer->sealed) [[likely]]
    wire::add_checksum({head, head_bytes}, {train.pieces + first_piece + 1, train.piece_count - first_piece - 1});

  if (train.datagrams == 0) train.datagram_size = segment.size;
  ++train.datagrams;
  train.bytes += segment.size;
  ++counters.datagrams_sent;
  counters.bytes_sent += segment.size;

  note_transmission(segment, now);
}

void Link::State::note_transmission(Segment& segment, base::Instant now) {
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

wire::Header Link::State::header_with_ack(const Peer& peer, base::Instant now) const {
  wire::Header header;
  header.slot = peer.theirs.slot;
  header.token = peer.theirs.token;
  header.sequence = peer.window.next();
  header.ack = peer.received.next();
  header.ack_bitmap = peer.received.bitmap(0);
  header.timestamp = wire::to_ticks(now);
  if (is_crowded()) [[unlikely]]
    header.credits = credits_for(peer);
  // An echo that waited long says more about the difference of two clocks than about the path.
  if (peer.ack.has_echo && now - peer.ack.echo_arrived <= kEchoFreshFor) {
    header.flags |= wire::Flags::kEchoes;
    if (peer.ack.was_duplicate) header.flags |= wire::Flags::kDuplicate;
    header.echo = peer.ack.echo;
    header.echo_delay = wire::to_ticks(now - peer.ack.echo_arrived);
  }
  return header;
}

/// An ACK went out on a segment. If the bitmap of a header was too short for it, a segment of its own still follows.
void Link::State::settle_ack(Peer& peer) {
  AckDebt& debt = peer.ack;
  debt.was_duplicate = false;
  if (!debt.is_owed || (debt.is_at_once && peer.received.bitmap_words() > 1)) return;
  debt.is_owed = false;
  debt.is_at_once = false;
  debt.segments = debt.commands = 0;
  debt.bytes = 0;
  peer.ack_hook.unlink();
}

void Link::State::serve_ack(Peer& peer, base::Instant now, Train& train) {
  if (peer.mtu.wanted() != 0) [[unlikely]]
    return serve_probe(peer, now, train);
  wire::Header header = header_with_ack(peer, now);
  header.kind = wire::Kind::ack;
  if (peer.granted != Peer::kNoBound && peer.has_bulk_queued()) [[unlikely]]
    header.flags |= wire::Flags::kAsks;
  std::array<std::uint64_t, wire::kAckWordsMax> words{};
  const std::uint32_t all = peer.received.bitmap_words();
  const std::uint32_t further = std::min<std::uint32_t>(all > 1 ? all - 1 : 0, wire::kAckWordsMax);
  for (std::uint32_t i = 0; i < further; ++i) words[i] = peer.received.bitmap(i + 1);
  send_control(peer.address, header, std::as_bytes(std::span(words).first(further)), train);
  hand_out(HandedOut::What::ack, peer);
  peer.ack.is_at_once = false;
  settle_ack(peer);
  peer.ack_hook.unlink();
  ++counters.acks_sent;
  if (peer.sealed) [[unlikely]]
    seal_train(peer, now, train);
}

bool Link::State::serve_control(base::Instant now, Train& train) {
  while (!control.empty()) {
    Peer& peer = control.front();
    wire::Header header;
    header.timestamp = wire::to_ticks(now);
    std::array<std::byte, wire::kHelloBytes> payload;
    if (peer.sealed && peer.sealed->owes_message) {
      serve_rekey(peer, now, train);
      return true;
    }
    if (peer.owes_hello_ack) {
      peer.owes_hello_ack = false;
      const bool is_for_candidate = peer.candidate.has_value();
      header.kind = wire::Kind::hello_ack;
      header.slot = is_for_candidate ? peer.candidate->theirs.slot : peer.theirs.slot;
      header.token = is_for_candidate ? peer.candidate->theirs.token : peer.theirs.token;
      header.flags = wire::Flags::kEchoes;
      header.echo = is_for_candidate ? peer.candidate->hello_timestamp : peer.hello_timestamp;
      if (is_for_candidate && peer.candidate->sealed) {
        header.flags = wire::Flags::kSealed;
        send_control(peer.address, header, peer.candidate->sealed->answer.span(), train);
      } else {
        wire::encode(hello_of(peer, is_for_candidate ? peer.candidate->ours : peer.ours), payload.data());
        send_control(peer.address, header, payload, train);
      }
      hand_out(HandedOut::What::hello_ack, peer);
      ++counters.hello_acks_sent;
      return true;
    }
    if (peer.probe_answers_owed != 0) {
      header = header_with_ack(peer, now);
      header.kind = wire::Kind::probe_answer;
      header.sequence = peer.probes_to_answer[--peer.probe_answers_owed];
      send_control(peer.address, header, {}, train);
      hand_out(HandedOut::What::probe_answer, peer);
      handed_out.probe = header.sequence;
      ++counters.probe_answers_sent;
      if (peer.sealed) seal_train(peer, now, train);
      return true;
    }
    if (peer.owes_hello) {
      peer.owes_hello = false;
      header.kind = wire::Kind::hello;
      header.token = peer.cookie;
      if (peer.sealed_hello) {
        header.flags = wire::Flags::kSealed;
        send_control(peer.address, header, peer.sealed_hello->message.span(), train);
      } else if (greets_sealed(peer)) {
        continue;  // there is no key for it; the time of its hello tells (greet_again)
      } else {
        wire::encode(hello_of(peer, peer.ours), payload.data());
        send_control(peer.address, header, payload, train);
      }
      hand_out(HandedOut::What::hello, peer);
      ++counters.hellos_sent;
      return true;
    }
    control.pop_front();
  }
  return false;
}

void Link::State::send_control(const base::SocketAddress& to, const wire::Header& header,
                               std::span<const std::byte> payload, Train& train) {
  const std::size_t size = wire::kSegmentHeaderBytes + payload.size();
  wire::encode(header, control_bytes.data());
  std::ranges::copy(payload, control_bytes.begin() + wire::kSegmentHeaderBytes);
  wire::add_checksum(std::span(control_bytes).first(size), {});
  hang_control(to, size, train);
}

/// What stands in control_bytes is a datagram.
void Link::State::hang_control(const base::SocketAddress& to, std::size_t size, Train& train) {
  add_piece(train, control_bytes.data(), size);
  train.to = to;
  train.datagram_size = static_cast<std::uint32_t>(size);
  train.datagrams = 1;
  train.bytes = static_cast<std::uint32_t>(size);
  ++counters.trains_sent;
  ++counters.datagrams_sent;
  counters.bytes_sent += size;
}

}  // namespace fairlead::link
