// Writes messages to rings: short ones at once, long ones in chunks, both while there is room.

#include "shm/outbox.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/copy_short.hpp"

namespace fairlead::shm {
namespace {

void gather(std::byte* out, std::span<const iovec> pieces, std::uint64_t size) {
  for (const iovec& piece : pieces) {
    const std::size_t part = std::min<std::uint64_t>(piece.iov_len, size);
    if (part > 0) base::copy_short(out, static_cast<const std::byte*>(piece.iov_base), part);
    out += part;
    size -= part;
    if (size == 0) return;
  }
}

/// Counts a message that is in the ring as a whole: those that are refused, taken back or lost before are not sent.
void count_sent(TransportCounters& counters, std::uint64_t bytes) {
  ++counters.messages_sent;
  counters.bytes_sent += bytes;
}

}  // namespace

Status Outbox::keep(TransportPeer& peer, const link::Outgoing& message, link::Reference* reference) {
  const bool is_long = message.size > kWholeMax;
  base::Fifo<Waiting>& queue = is_long ? peer.longs : peer.shorts;
  if (peer.shorts.size() + peer.longs.size() >= options_.waiting_max || !queue.has_room(1)) return Status::again;
  Block* copy = nullptr;
  if (message.size <= options_.copied_max) {
    // Copy short messages, as the link does: the sender may reuse their memory at once.
    copy = blocks_.take();
    if (copy == nullptr) return Status::again;
    gather(copy->data(), message.pieces, message.size);
  }
  ++counters_.messages_waited;
  queue.push({.message = message, .copy = copy});
  if (reference != nullptr) *reference = (is_long ? kOfLongs : 0) | queue.last_number();
  return Status::ok;
}

bool Outbox::write_short(TransportPeer& peer, Connection& to, const link::Outgoing& message, const Block* copy) {
  const wire::ShmKind kind = wire::shm_kind_of(message.envelope);
  const std::size_t before = wire::shm_head_bytes(kind);
  if (!peer.pending.has_room(1)) [[unlikely]]
    return false;
  std::byte* body = to.writer.reserve(before + message.size);
  if (body == nullptr) [[unlikely]] {
    if (!to.writer.look()) connections_.refuse_reader(peer.connection_slot);
    body = to.writer.reserve(before + message.size);
    if (body == nullptr) return false;
  }
  wire::encode_shm(body, kind, message.envelope, message.size);
  if (copy != nullptr) {
    std::memcpy(body + before, copy->data(), message.size);
  } else {
    gather(body + before, message.pieces, message.size);
  }
  to.writer.publish(before + message.size, to.reader.read());
  to.reader.told();
  count_sent(counters_, message.size);
  if (message.wants_outcome) peer.pending.push({.line = to.writer.written(), .cookie = message.cookie});
  return true;
}

// Sends the first long message by reference, if the peer can read it in place and that pays. Only the reader copies.
bool Outbox::write_place(TransportPeer& peer, Connection& to) {
  const link::Outgoing& message = peer.longs.front().message;
  const PublishedMemory* const published = connections_.published().get();
  if (message.size < options_.pull_min || message.size > options_.pull_max || message.pieces.size() != 1 ||
      published == nullptr)
    return false;
  const auto place = published->place_of({static_cast<const std::byte*>(message.pieces[0].iov_base), message.size},
                                         to.other->sees.load(std::memory_order_relaxed));
  const std::size_t bytes = wire::shm_head_bytes(wire::ShmKind::by_reference);
  std::byte* const body = place ? to.writer.reserve(bytes) : nullptr;
  if (body == nullptr) return false;
  if (!peer.tickets) peer.tickets.reset(new (std::nothrow) Tickets);
  const std::uint32_t ticket = peer.tickets ? peer.tickets->give(to.own->tickets, message.cookie) : 0;
  if (ticket == 0) return false;
  wire::encode_shm(body, wire::ShmKind::by_reference, message.envelope, message.size, *place, ticket);
  to.writer.publish(bytes, to.reader.read());
  to.reader.told();
  to.alert();
  ++counters_.messages_pulled;
  count_sent(counters_, message.size);
  peer.pending.push({.line = to.writer.written(), .cookie = message.cookie, .length = ticket});
  peer.longs.pop();
  return true;
}

// Writes the next chunk of the first long message, if there is room for a large enough part of it.
bool Outbox::write_chunk(TransportPeer& peer, Connection& to) {
  if (peer.longs.front().is_void) [[unlikely]]
    return write_taken_back(peer, to);
  const link::Outgoing& message = peer.longs.front().message;
  const bool is_first = peer.long_sent.bytes == 0;
  if (!peer.pending.has_room(1)) return false;
  if (is_first && write_place(peer, to)) return true;
  const wire::ShmKind kind = is_first ? wire::ShmKind::first : wire::ShmKind::next;
  const std::size_t before = wire::shm_head_bytes(kind);
  const std::size_t chunk =
      std::min<std::uint64_t>(kChunkMax - kRingHead - before, message.size - peer.long_sent.bytes);
  std::byte* body = to.writer.reserve(before + chunk);
  if (body == nullptr) return false;
  wire::encode_shm(body, kind, message.envelope, message.size);
  peer.long_sent.copy(message.pieces, body + before, chunk);
  to.writer.publish(before + chunk, to.reader.read());
  to.reader.told();
  to.alert();
  ++counters_.chunks_sent;
  if (peer.long_sent.bytes < message.size) return true;
  count_sent(counters_, message.size);
  if (message.wants_outcome) peer.pending.push({.line = to.writer.written(), .cookie = message.cookie});
  peer.longs.pop();
  peer.long_sent = {};
  return true;
}

// The first long message was taken back. Tells the reader of its beginning that nothing follows.
bool Outbox::write_taken_back(TransportPeer& peer, Connection& to) {
  if (peer.long_sent.bytes != 0) {
    const std::size_t bytes = wire::shm_head_bytes(wire::ShmKind::taken_back);
    std::byte* const body = to.writer.reserve(bytes);
    if (body == nullptr) return false;
    wire::encode_shm(body, wire::ShmKind::taken_back, peer.longs.front().message.envelope, 0);
    to.writer.publish(bytes, to.reader.read());
    to.reader.told();
    to.alert();
  }
  peer.longs.pop();
  peer.long_sent = {};
  return true;
}

// Writes as many waiting messages as fit: short ones first, but chunks get their turn.
bool Outbox::pump(TransportPeer& peer, Connection& to) {
  bool any = false;
  for (bool moves = true; moves;) {
    moves = false;
    for (int i = 0; i < kShortsInTurn && !peer.shorts.empty(); ++i) {
      Waiting& first = peer.shorts.front();
      if (!first.is_void && !write_short(peer, to, first.message, first.copy)) break;
      release(first);
      peer.shorts.pop();
      moves = true;
    }
    if (moves) to.alert();
    if (!peer.longs.empty()) moves |= write_chunk(peer, to);
    any |= moves;
  }
  return any;
}

bool Outbox::take_back(TransportPeer& peer, Connection* to, link::Reference reference, std::uint64_t cookie) {
  if ((reference & kOfPending) != 0) return peer.give_up_pending(reference & ~kOfPending, cookie);
  const bool is_long = (reference & kOfLongs) != 0;
  if (is_long && peer.tickets && to != nullptr && peer.tickets->take_back(to->own->tickets, cookie)) return true;
  Waiting* const waiting = is_long ? peer.longs.find(reference & ~kOfLongs) : peer.shorts.find(reference);
  if (waiting == nullptr || waiting->is_void || !waiting->message.wants_outcome || waiting->message.cookie != cookie)
    return false;
  waiting->is_void = true;
  waiting->message.pieces = {};
  return true;
}

}  // namespace fairlead::shm
