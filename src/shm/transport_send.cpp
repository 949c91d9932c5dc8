// What goes out through the transport: short messages at once, long ones in chunks, both when there is room.

#include <algorithm>
#include <cstring>

#include "base/copy_short.hpp"
#include "shm/transport.hpp"

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

}  // namespace

Status Transport::submit(link::PeerHandle handle, const link::Outgoing& message, base::Instant now) {
  const std::uint32_t index = handle.slot - kFirstSlot;
  if (index >= peers_.size() || peers_[index]->generation != handle.generation) [[unlikely]]
    return Status::stale;
  Peer& peer = *peers_[index];
  if (!message.wants_outcome && message.size > options_.copied_max) [[unlikely]]
    return Status::invalid;
  ++counters_.messages_sent;
  counters_.bytes_sent += message.size;
  Connection* const to = connection_of(peer);
  if (message.wants_outcome || to == nullptr) make_busy(index, now);
  const bool is_short = message.size <= kWholeMax;
  if (to != nullptr && is_short && peer.shorts.empty() && write_short(peer, *to, message, nullptr)) [[likely]] {
    to->alert();
    return Status::ok;
  }
  const Status status = wait_for_room(peer, message);
  if (status == Status::ok && to != nullptr) {
    make_busy(index, now);
    if (!is_short) pump(peer, *to);
  }
  return status;
}

bool Transport::has_room(link::PeerHandle handle) {
  const std::size_t bytes = wire::shm_head_bytes(wire::ShmKind::whole);
  Peer& peer = *peers_[handle.slot - kFirstSlot];
  Connection* const to = connection_of(peer);
  if (to == nullptr || !peer.shorts.empty()) return false;
  return to->writer.reserve(bytes) != nullptr || (to->writer.look() && to->writer.reserve(bytes) != nullptr);
}

bool Transport::is_on_its_way(std::uint32_t index, std::uint32_t number) {
  if (index >= peers_.size()) return false;
  Peer& peer = *peers_[index];
  return !peer.pending.empty() &&
         static_cast<std::int32_t>(number - static_cast<std::uint32_t>(peer.pending.front().line)) >= 0;
}

Status Transport::wait_for_room(Peer& peer, const link::Outgoing& message) {
  if (peer.shorts.size() + peer.longs.size() >= options_.waiting_max) {
    --counters_.messages_sent;
    counters_.bytes_sent -= message.size;
    return Status::again;
  }
  ++counters_.messages_waited;
  if (message.size > kWholeMax) {
    peer.longs.push({message, nullptr});
  } else {
    peer.shorts.push({message, message.size <= options_.copied_max ? copy_block(message) : nullptr});
  }
  return Status::ok;
}

// As the link: the sender may reuse short memory at once.
std::byte* Transport::copy_block(const link::Outgoing& message) {
  if (free_blocks_.empty()) {
    blocks_.push_back(std::make_unique<std::byte[]>(kBlockBytes));
    free_blocks_.reserve(blocks_.size());
    free_blocks_.push_back(blocks_.back().get());
  }
  std::byte* block = free_blocks_.back();
  free_blocks_.pop_back();
  gather(block, message.pieces, message.size);
  return block;
}

bool Transport::write_short(Peer& peer, Connection& to, const link::Outgoing& message, const std::byte* copy) {
  const wire::ShmKind kind = wire::shm_kind_of(message.envelope);
  const std::size_t before = wire::shm_head_bytes(kind);
  std::byte* body = to.writer.reserve(before + message.size);
  if (body == nullptr) [[unlikely]] {
    if (!to.writer.look()) refuse_reader(peer.connection_slot);
    body = to.writer.reserve(before + message.size);
    if (body == nullptr) return false;
  }
  wire::encode_shm(body, kind, message.envelope, message.size);
  if (copy != nullptr) {
    std::memcpy(body + before, copy, message.size);
  } else {
    gather(body + before, message.pieces, message.size);
  }
  to.writer.publish(before + message.size, to.reader.read());
  to.reader.told();
  if (message.wants_outcome) peer.pending.push({.line = to.writer.written(), .cookie = message.cookie});
  return true;
}

// Tells where the first long message lies, if the peer can read it there and that pays. One copy then, the reader's.
bool Transport::write_place(Peer& peer, Connection& to) {
  const link::Outgoing& message = peer.longs.front().message;
  if (message.size < options_.pull_min || message.size > options_.pull_max || message.pieces.size() != 1 ||
      to.other->sees_arena.load(std::memory_order_relaxed) == 0)
    return false;
  const auto place =
      connections_->arena() == nullptr
          ? std::nullopt
          : connections_->arena()->find({static_cast<const std::byte*>(message.pieces[0].iov_base), message.size});
  const std::size_t bytes = wire::shm_head_bytes(wire::ShmKind::by_reference);
  std::byte* const body = place ? to.writer.reserve(bytes) : nullptr;
  if (body == nullptr) return false;
  wire::encode_shm(body, wire::ShmKind::by_reference, message.envelope, message.size, *place);
  to.writer.publish(bytes, to.reader.read());
  to.reader.told();
  to.alert();
  ++counters_.messages_pulled;
  if (message.wants_outcome) peer.pending.push({.line = to.writer.written(), .cookie = message.cookie});
  peer.longs.pop();
  return true;
}

// The next chunk of the first long message, if there is room for a good piece of it.
bool Transport::write_chunk(Peer& peer, Connection& to) {
  const link::Outgoing& message = peer.longs.front().message;
  const bool is_first = peer.long_sent == 0;
  if (is_first && write_place(peer, to)) return true;
  const wire::ShmKind kind = is_first ? wire::ShmKind::first : wire::ShmKind::next;
  const std::size_t before = wire::shm_head_bytes(kind);
  const std::size_t chunk = std::min<std::uint64_t>(kChunkMax - kRingHead - before, message.size - peer.long_sent);
  std::byte* body = to.writer.reserve(before + chunk);
  if (body == nullptr) return false;
  wire::encode_shm(body, kind, message.envelope, message.size);
  gather_chunk(peer, body + before, chunk);
  to.writer.publish(before + chunk, to.reader.read());
  to.reader.told();
  to.alert();
  ++counters_.chunks_sent;
  peer.long_sent += chunk;
  if (peer.long_sent < message.size) return true;
  if (message.wants_outcome) peer.pending.push({.line = to.writer.written(), .cookie = message.cookie});
  peer.longs.pop();
  peer.long_sent = peer.long_piece = peer.long_offset = 0;
  return true;
}

void Transport::gather_chunk(Peer& peer, std::byte* out, std::size_t bytes) {
  const std::span<const iovec> pieces = peer.longs.front().message.pieces;
  while (bytes > 0) {
    const iovec& piece = pieces[peer.long_piece];
    const std::size_t part = std::min(bytes, piece.iov_len - peer.long_offset);
    if (part > 0) std::memcpy(out, static_cast<const std::byte*>(piece.iov_base) + peer.long_offset, part);
    out += part;
    bytes -= part;
    peer.long_offset += part;
    if (peer.long_offset == piece.iov_len) {
      ++peer.long_piece;
      peer.long_offset = 0;
    }
  }
}

// Writes what waits, as far as there is room: short ones first, but a chunk in its turn.
bool Transport::pump(Peer& peer, Connection& to) {
  bool any = false;
  for (bool moves = true; moves;) {
    moves = false;
    for (int i = 0; i < kShortsInTurn && !peer.shorts.empty(); ++i) {
      Waiting& first = peer.shorts.front();
      if (!write_short(peer, to, first.message, first.copy)) break;
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

void Transport::refuse_reader(std::uint32_t connection_slot) {
  connections_->refuse(connection_slot, "it claims to have read what nobody wrote");
}

bool Transport::cancel(link::PeerHandle handle, std::uint64_t cookie) {
  const std::uint32_t index = handle.slot - kFirstSlot;
  if (index >= peers_.size() || peers_[index]->generation != handle.generation) return false;
  Peer& peer = *peers_[index];
  for (auto* queue : {&peer.shorts, &peer.longs}) {
    for (std::size_t i = 0; i < queue->size(); ++i) {
      const link::Outgoing& message = (*queue)[i].message;
      if (!message.wants_outcome || message.cookie != cookie) continue;
      if (queue == &peer.longs && i == 0 && peer.long_sent > 0) return false;
      release((*queue)[i]);
      queue->erase(i);
      outcomes_.push({cookie, Status::canceled});
      return true;
    }
  }
  return false;
}

}  // namespace fairlead::shm
