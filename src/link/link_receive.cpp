// A datagram came: it is parsed, its session found by its token, its ACK taken, its sequence judged; what is new is
// delivered at once, also beyond a gap.

#include <new>

#include "base/rare.hpp"
#include "link/link_state.hpp"

namespace fairlead::link {
namespace {

// Segments full of tiny messages after which the sender hears: who has so many messages in flight waits for their ends
// before he sends more, and should not have to wait for all of them.
constexpr std::uint32_t kCommandsToAnswer = 6;

}  // namespace

void Link::State::receive(const base::SocketAddress& from, std::span<const std::byte> bytes, base::Instant now,
                          std::uint32_t datagram_size_max) {
  reader = {};
  chunk_delivery.reset();
  handed_out.what = HandedOut::What::nothing;
  ++counters.datagrams_received;
  counters.bytes_received += bytes.size();
  const auto frame = wire::decode(bytes);
  if (!frame) [[unlikely]] {
    ++counters.malformed[static_cast<std::size_t>(frame.error())];
    return;
  }
  if (notices.size() >= kNoticesMax) [[unlikely]]
    return refuse(Refusal::notices_full);
  if (!has_room_for_news()) [[unlikely]]
    return refuse(Refusal::no_memory);
  try {
    on_segment(from, *frame, now, datagram_size_max);
  } catch (const std::bad_alloc&) {
    reader = {};
    chunk_delivery.reset();
    refuse(Refusal::no_memory);
  }
}

/// For what one event can cause: so many peers are lost, with all that has come in part, and so many let go. Whoever
/// may lose a peer asks first, so that no loss can fail half-way.
bool Link::State::has_room_for_news() noexcept {
  constexpr std::size_t kLost = 2, kOthers = 8;
  return notices.has_room(kLost * options.reassembly_slots + kOthers) && strays.has_room(kOthers);
}

/// Where there is no memory it throws, and nothing has changed but that some of it may be there next time.
void Link::State::on_segment(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                             std::uint32_t datagram_size_max) {
  switch (frame.header.kind) {
    case wire::Kind::data:
    case wire::Kind::ack:
    case wire::Kind::close:
    case wire::Kind::probe:
    case wire::Kind::probe_answer:
    case wire::Kind::part:
    case wire::Kind::rekey:
    case wire::Kind::rekey_answer:
      return on_session_segment(from, frame, now);
    case wire::Kind::hello:
      return on_hello(from, frame, now, datagram_size_max);
    case wire::Kind::hello_ack:
      return on_hello_ack(from, frame, now);
    case wire::Kind::hello_retry:
      return on_hello_retry(from, frame);
    case wire::Kind::hello_refused:
      return on_hello_refused(from, frame);
    case wire::Kind::reset:
      return on_reset(from, frame, now);
  }
}

void Link::State::on_session_segment(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now) {
  const wire::Header& header = frame.header;
  Peer* peer = peers.find_slot(header.slot);
  const bool is_of_session = peer != nullptr && peer->state == Peer::State::open && peer->ours.token == header.token;
  const bool is_of_candidate =
      !is_of_session && peer != nullptr && peer->candidate && peer->candidate->ours.token == header.token;
  if (!is_of_session && !is_of_candidate) [[unlikely]] {
    refuse(Refusal::unknown_token);
    if (header.kind == wire::Kind::data || header.kind == wire::Kind::part) answer_with_reset(from, header.token, now);
    return;
  }
  if (peer->address != from) [[unlikely]]
    return refuse(Refusal::wrong_address);
  const bool is_sealed = is_of_candidate ? peer->candidate->sealed != nullptr : peer->sealed != nullptr;
  if (is_sealed || frame.is_sealed()) [[unlikely]]
    return on_sealed_segment(*peer, is_of_candidate, frame, now);
  if (is_of_candidate) [[unlikely]]
    promote(*peer, now);
  accept_segment(*peer, frame, now);
}

/// One of a session, opened if the session is sealed.
void Link::State::accept_segment(Peer& peer, const wire::Frame& frame, base::Instant now) {
  const wire::Header& header = frame.header;
  // A close too says what has arrived: messages whose ACK was lost end well, only the others are refused.
  if (!take_ack(peer, frame, now)) [[unlikely]]
    return refuse(Refusal::ack_beyond_sent);
  peer.last_heard = now;
  if (header.credits != 0 || peer.granted != Peer::kNoBound) [[unlikely]]
    take_grant(peer, header.credits, now);
  if ((header.flags & wire::Flags::kAsks) != 0) [[unlikely]]
    on_asked(peer, now);
  if (header.kind == wire::Kind::data) [[likely]]
    return on_data(peer, frame, now);
  if (header.kind == wire::Kind::ack) {
    ++counters.acks_received;
    return;
  }
  if (header.kind == wire::Kind::part) return on_part(peer, frame, now);
  if (header.kind == wire::Kind::probe) return on_probe(peer, frame);
  if (header.kind == wire::Kind::probe_answer) return on_probe_answer(peer, frame, now);
  if (header.kind == wire::Kind::rekey) return on_rekey(peer, frame, now);
  if (header.kind == wire::Kind::rekey_answer) return on_rekey_answer(peer, frame, now);
  ++counters.closes_received;
  if ((header.flags & wire::Flags::kIdle) != 0 && is_free_of_us(peer) && peer.is_quiet()) {
    close_session(peer);
    return let_go(peer);
  }
  if ((header.flags & wire::Flags::kLeaves) != 0) {
    peer.has_left = true;
    if (strays.size() < kStraysMax) say_close(peer, 0, 1);  // it has been heard, and may go
  }
  lose(peer, Status::refused, now, true);
}

void Link::State::on_data(Peer& peer, const wire::Frame& frame, base::Instant now) {
  const wire::Header& header = frame.header;
  const ReceiveWindow::Verdict verdict = peer.received.judge(header.sequence);
  if (verdict != ReceiveWindow::Verdict::fresh) [[unlikely]] {
    // The ACK of the first copy may be lost, or is on its way: say again at once what has arrived.
    owe_ack(peer, frame, now, verdict != ReceiveWindow::Verdict::too_new, true);
    return refuse(verdict == ReceiveWindow::Verdict::duplicate ? Refusal::duplicate
                  : verdict == ReceiveWindow::Verdict::too_old ? Refusal::too_old
                                                               : Refusal::too_new);
  }
  peer.received.reserve(header.sequence);
  wire::RecordReader run(frame.payload);
  reader_peer = PeerTable::handle(peer);
  bool is_end = false;  // of a chunked message
  if (const wire::Record first = wire::RecordReader(run).next(); first.kind != wire::RecordKind::whole) {
    if (!accept_chunk(peer, first)) [[unlikely]]
      return;
    is_end = !chunk_delivery || chunk_delivery->is_last;
  } else {
    reader = run;
  }
  const bool was_in_order = header.sequence == peer.received.next();
  peer.received.mark(header.sequence);
  if ((header.flags & wire::Flags::kCommand) == 0) on_bulk(peer, frame, now);
  ++counters.data_received;
  const bool has_gap = !was_in_order || peer.received.ahead() != 0;
  if (has_gap) counters.reordered_most = std::max<std::uint64_t>(counters.reordered_most, peer.received.ahead());
  owe_ack(peer, frame, now, false, is_end || has_gap || (header.flags & wire::Flags::kAnswerAtOnce) != 0);
}

bool Link::State::accept_chunk(Peer& peer, const wire::Record& record) {
  if (record.kind == wire::RecordKind::voided) [[unlikely]] {
    // The peer has taken a message back. What has come of it is the engine's to throw away.
    const Reassembly::Slot closed = peer.reassembly.take_void(record.chunk);
    ++counters.voids_received;
    if (closed.is_open)
      notices.push({.kind = Notice::Kind::reassembly_lost,
                    .peer = reader_peer,
                    .status = Status::refused,
                    .target = closed.target});
    return true;
  }
  Reassembly::Verdict verdict = peer.reassembly.judge(record);
  if (base::rare("link: a chunk finds no slot")) [[unlikely]]
    verdict = Reassembly::Verdict::no_slot;
  if (verdict != Reassembly::Verdict::fits) [[unlikely]] {
    refuse(verdict == Reassembly::Verdict::no_slot ? Refusal::no_slot : Refusal::bad_chunk);
    return false;
  }
  if (peer.reassembly.is_void(record.chunk)) return true;  // it is late: nobody wants it any more
  const Reassembly::Slot before = peer.reassembly.take(record);
  chunk_delivery = Delivery{
      .peer = reader_peer,
      .envelope = record.envelope,
      .size = record.chunk.size,
      .offset = record.chunk.offset,
      .bytes = record.bytes,
      .reassembly = record.chunk.slot,
      .is_first = !before.is_open,
      .is_last = record.bytes.size() == (before.is_open ? before.bytes_left : record.chunk.size),
      .target = before.target,
  };
  return true;
}

void Link::State::owe_ack(Peer& peer, const wire::Frame& frame, base::Instant now, bool is_duplicate, bool is_at_once) {
  AckDebt& debt = peer.ack;
  // Of several segments the last is echoed, but one that came in vain must be told.
  if (!debt.was_duplicate || is_duplicate) {
    debt.echo = frame.header.timestamp;
    debt.echo_arrived = now;
    debt.has_echo = true;
    debt.was_duplicate = is_duplicate;
  }
  ++debt.segments;
  if ((frame.header.flags & wire::Flags::kCommand) != 0) ++debt.commands;
  debt.bytes += wire::kSegmentHeaderBytes + frame.payload.size() + options.segment_overhead;
  if (!debt.is_owed) {
    debt.is_owed = true;
    debt.due = now + options.ack_after;
    wake_by(peer, debt.due);
  }
  if (is_at_once || base::rare("link: an ack goes at once") || debt.segments >= peer.segments_limit[0] / 4 ||
      debt.bytes >= peer.bytes_limit[0] / 4 || debt.commands >= kCommandsToAnswer) {
    debt.is_at_once = true;
    if (!peer.ack_hook.is_linked()) acks.push_back(peer);
  }
}

std::optional<Delivery> Link::State::next_delivery() {
  if (chunk_delivery) {
    ++counters.chunks_delivered;
    counters.messages_delivered += chunk_delivery->is_last;
    counters.message_bytes_delivered += chunk_delivery->bytes.size();
    return std::exchange(chunk_delivery, std::nullopt);
  }
  if (reader.is_empty()) return std::nullopt;
  const wire::Record record = reader.next();
  ++counters.messages_delivered;
  counters.message_bytes_delivered += record.bytes.size();
  return Delivery{.peer = reader_peer, .envelope = record.envelope, .size = record.bytes.size(), .bytes = record.bytes};
}

}  // namespace fairlead::link
