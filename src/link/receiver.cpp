#include "link/receiver.hpp"

#include <new>
#include <utility>

#include "base/rare.hpp"

namespace fairlead::link {

Receiver::Receiver(LinkContext& context, const Parts& parts)
    : context_(context),
      peers_(parts.peers),
      strangers_(parts.strangers),
      grants_(parts.grants),
      sizes_(parts.sizes),
      acks_(parts.acks),
      keys_(parts.keys),
      sessions_(parts.sessions),
      parts_room_(context.options.parts_bytes) {
  if (context.tag_bytes_at_most != 0) opened_ = std::make_unique<std::byte[]>(wire::kDatagramSizeMost);
}

void Receiver::forget_last() {
  reader_ = {};
  chunk_delivery_.reset();
}

void Receiver::receive(const base::SocketAddress& from, std::span<const std::byte> bytes, base::Instant now,
                       std::uint32_t datagram_size_max) {
  forget_last();
  ++context_.counters.datagrams_received;
  context_.counters.bytes_received += bytes.size();
  const auto frame = wire::decode(bytes);
  if (!frame) [[unlikely]] {
    ++context_.counters.malformed[static_cast<std::size_t>(frame.error())];
    return;
  }
  if (context_.news.is_full()) [[unlikely]]
    return context_.counters.refuse(Refusal::notices_full);
  if (!sessions_.has_room_for_news()) [[unlikely]]
    return context_.counters.refuse(Refusal::no_memory);
  try {
    on_segment(from, *frame, now, datagram_size_max);
  } catch (const std::bad_alloc&) {
    forget_last();
    context_.counters.refuse(Refusal::no_memory);
  }
}

/// Throws std::bad_alloc if there is no memory. Then nothing has changed, except that a part of the memory may have
/// been allocated for the next attempt.
void Receiver::on_segment(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
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
      return sessions_.on_hello(from, frame, now, datagram_size_max);
    case wire::Kind::hello_ack:
      return sessions_.on_hello_ack(from, frame, now);
    case wire::Kind::hello_retry:
      return sessions_.on_hello_retry(from, frame);
    case wire::Kind::hello_refused:
      return sessions_.on_hello_refused(from, frame);
    case wire::Kind::reset:
      return sessions_.on_reset(from, frame, now);
  }
}

void Receiver::on_session_segment(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now) {
  const wire::Header& header = frame.header;
  Peer* peer = peers_.find_slot(header.slot);
  const bool is_of_session = peer != nullptr && peer->state == Peer::State::open && peer->ours.token == header.token;
  const bool is_of_candidate =
      !is_of_session && peer != nullptr && peer->candidate && peer->candidate->ours.token == header.token;
  if (!is_of_session && !is_of_candidate) [[unlikely]] {
    context_.counters.refuse(Refusal::unknown_token);
    if (header.kind == wire::Kind::data || header.kind == wire::Kind::part)
      strangers_.answer_with_reset(from, header.token, now);
    return;
  }
  if (peer->address != from) [[unlikely]]
    return context_.counters.refuse(Refusal::wrong_address);
  const bool is_sealed = is_of_candidate ? peer->candidate->sealed != nullptr : peer->sealed != nullptr;
  if (is_sealed || frame.is_sealed()) [[unlikely]]
    return on_sealed_segment(*peer, is_of_candidate, frame, now);
  if (is_of_candidate) [[unlikely]]
    sessions_.promote(*peer, now);
  accept_segment(*peer, frame, now);
}

/// Handles a segment of a session or candidate of ours if the segment, or the session, is sealed.
void Receiver::on_sealed_segment(Peer& peer, bool is_of_candidate, const wire::Frame& frame, base::Instant now) {
  SealedSession* session = peer.sealed.get();
  if (is_of_candidate) session = peer.candidate->sealed ? peer.candidate->sealed->session.get() : nullptr;
  if (!frame.is_sealed()) return context_.counters.refuse(Refusal::not_sealed);
  if (session == nullptr) return context_.counters.refuse(Refusal::unknown_epoch);
  const std::uint64_t epoch_before = session->keys.epoch();
  switch (session->keys.open(wire::epoch_of(frame.header), wire::number_of(wire::header_bytes(frame)),
                             wire::header_bytes(frame), frame.payload, opened_.get())) {
    case seal::Opened::unknown_epoch:
      return context_.counters.refuse(Refusal::unknown_epoch);
    case seal::Opened::replayed:
      return context_.counters.refuse(Refusal::replayed);
    case seal::Opened::bad_tag:
      return context_.counters.refuse(Refusal::bad_tag);
    case seal::Opened::ok:
      break;
  }
  const std::span plain(opened_.get(), frame.payload.size() - wire::kTagBytes);
  if (const auto reason = wire::check_payload(frame.header.kind, plain)) [[unlikely]] {
    ++context_.counters.malformed[static_cast<std::size_t>(*reason)];
    return;
  }
  if (session->keys.epoch() != epoch_before) [[unlikely]]
    keys_.settle(*session, now);
  if (peer.sealed_hello && !is_of_candidate) [[unlikely]]
    sessions_.end_doubt(peer);
  if (is_of_candidate) [[unlikely]]
    sessions_.promote(peer, now);
  accept_segment(peer, {frame.header, plain}, now);
}

/// Handles a segment of a session, after decryption if the session is sealed.
void Receiver::accept_segment(Peer& peer, const wire::Frame& frame, base::Instant now) {
  const wire::Header& header = frame.header;
  // A close also carries an ACK: messages whose ACK was lost end well, and only the others are refused.
  if (!acks_.take(peer, frame, now)) [[unlikely]]
    return context_.counters.refuse(Refusal::ack_beyond_sent);
  peer.last_heard = now;
  if (header.credits != 0 || peer.granted != Peer::kNoBound) [[unlikely]]
    grants_.take(peer, header.credits, now);
  if ((header.flags & wire::Flags::kAsks) != 0) [[unlikely]]
    grants_.on_asked(peer, now);
  if (header.kind == wire::Kind::data) [[likely]]
    return on_data(peer, frame, now);
  if (header.kind == wire::Kind::ack) {
    ++context_.counters.acks_received;
    return;
  }
  if (header.kind == wire::Kind::part) return on_part(peer, frame, now);
  if (header.kind == wire::Kind::probe) return sizes_.on_probe(peer, frame);
  if (header.kind == wire::Kind::probe_answer) return sizes_.on_probe_answer(peer, frame, now);
  if (header.kind == wire::Kind::rekey) return keys_.on_rekey(peer, frame, now);
  if (header.kind == wire::Kind::rekey_answer) return keys_.on_rekey_answer(peer, frame, now);
  sessions_.on_close(peer, frame, now);
}

void Receiver::on_data(Peer& peer, const wire::Frame& frame, base::Instant now) {
  const wire::Header& header = frame.header;
  const ReceiveWindow::Verdict verdict = peer.received.judge(header.sequence);
  if (verdict != ReceiveWindow::Verdict::fresh) [[unlikely]] {
    // The ACK of the first copy may be lost or still on its way, so another ACK is sent at once.
    acks_.owe(peer, frame, now, verdict != ReceiveWindow::Verdict::too_new, AckUrgency::at_once);
    return context_.counters.refuse(verdict == ReceiveWindow::Verdict::duplicate ? Refusal::duplicate
                                    : verdict == ReceiveWindow::Verdict::too_old ? Refusal::too_old
                                                                                 : Refusal::too_new);
  }
  peer.received.reserve(header.sequence);
  wire::RecordReader run(frame.payload);
  reader_peer_ = PeerTable::handle(peer);
  bool is_end = false;  // end of a chunked message
  if (const wire::Record first = wire::RecordReader(run).next(); first.kind != wire::RecordKind::whole) {
    if (!accept_chunk(peer, first)) [[unlikely]]
      return;
    is_end = !chunk_delivery_ || chunk_delivery_->is_last;
  } else {
    reader_ = run;
  }
  const bool was_in_order = header.sequence == peer.received.next();
  peer.received.mark(header.sequence);
  if ((header.flags & wire::Flags::kCommand) == 0) grants_.on_bulk(peer, frame, now);
  ++context_.counters.data_received;
  const bool has_gap = !was_in_order || peer.received.ahead() != 0;
  if (has_gap)
    context_.counters.reordered_most = std::max<std::uint64_t>(context_.counters.reordered_most, peer.received.ahead());
  const bool is_at_once = has_gap || (header.flags & wire::Flags::kAnswerAtOnce) != 0;
  acks_.owe(peer, frame, now, false,
            is_at_once ? AckUrgency::at_once
            : is_end   ? AckUrgency::after_end
                       : AckUrgency::later);
}

void Receiver::on_part(Peer& peer, const wire::Frame& frame, base::Instant now) {
  if (peer.received.judge(frame.header.sequence) != ReceiveWindow::Verdict::fresh) return on_data(peer, frame, now);
  if (!peer.parts) peer.parts = std::make_unique<SegmentParts>(parts_room_);
  const std::span<const std::byte> whole = peer.parts->add(frame.header.sequence, wire::read_part(frame.payload));
  context_.counters.parts_dropped += parts_room_.take_dropped();
  if (whole.empty()) {
    ++context_.counters.parts_received;
    return;
  }
  if (!wire::is_run_of_records(whole)) return context_.counters.refuse(Refusal::bad_chunk);
  on_data(peer, {frame.header, whole}, now);
}

bool Receiver::accept_chunk(Peer& peer, const wire::Record& record) {
  if (record.kind == wire::RecordKind::voided) [[unlikely]] {
    // The peer has taken a message back. The engine has to throw away what has arrived of it.
    const Reassembly::Slot closed = peer.reassembly.take_void(record.chunk);
    ++context_.counters.voids_received;
    if (closed.is_open)
      context_.news.tell({.kind = Notice::Kind::reassembly_lost,
                          .peer = reader_peer_,
                          .status = Status::refused,
                          .target = closed.target});
    return true;
  }
  Reassembly::Verdict verdict = peer.reassembly.judge(record);
  if (base::rare("link: a chunk finds no slot")) [[unlikely]]
    verdict = Reassembly::Verdict::no_slot;
  if (verdict != Reassembly::Verdict::fits) [[unlikely]] {
    context_.counters.refuse(verdict == Reassembly::Verdict::no_slot ? Refusal::no_slot : Refusal::bad_chunk);
    return false;
  }
  if (peer.reassembly.is_void(record.chunk)) return true;  // a late chunk of a message that was taken back
  const Reassembly::Slot before = peer.reassembly.take(record);
  chunk_delivery_ = Delivery{
      .peer = reader_peer_,
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

std::optional<Delivery> Receiver::next() {
  if (chunk_delivery_) {
    ++context_.counters.chunks_delivered;
    context_.counters.messages_delivered += chunk_delivery_->is_last;
    context_.counters.message_bytes_delivered += chunk_delivery_->bytes.size();
    return std::exchange(chunk_delivery_, std::nullopt);
  }
  if (reader_.is_empty()) return std::nullopt;
  const wire::Record record = reader_.next();
  ++context_.counters.messages_delivered;
  context_.counters.message_bytes_delivered += record.bytes.size();
  return Delivery{
      .peer = reader_peer_, .envelope = record.envelope, .size = record.bytes.size(), .bytes = record.bytes};
}

}  // namespace fairlead::link
