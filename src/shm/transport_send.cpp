// The send side of the transport.

#include "shm/transport.hpp"

namespace fairlead::shm {

Status Transport::submit(link::PeerHandle handle, const link::Outgoing& message, base::Instant now,
                         link::Reference* reference) {
  Peer* const found = peers_.find(handle);
  if (found == nullptr) [[unlikely]]
    return Status::stale;
  Peer& peer = *found;
  const std::uint32_t index = handle.slot - kFirstSlot;
  if (!message.wants_outcome && message.size > options_.copied_max) [[unlikely]]
    return Status::invalid;
  Connection* const to = connection_of(peer);
  if (message.wants_outcome || to == nullptr) make_busy(index, now);
  const bool is_short = message.size <= Outbox::kWholeMax;
  if (to != nullptr && is_short && peer.shorts.empty() && outbox_.write_short(peer, *to, message, nullptr)) [[likely]] {
    to->alert();
    if (reference != nullptr && message.wants_outcome) *reference = Outbox::last_written(peer);
    return Status::ok;
  }
  const Status status = outbox_.keep(peer, message, reference);
  if (status == Status::ok && to != nullptr) {
    make_busy(index, now);
    if (!is_short) outbox_.pump(peer, *to);
  }
  return status;
}

bool Transport::write(link::PeerHandle handle, const wire::Envelope& envelope) {
  Peer& peer = peers_[handle];
  Connection* const to = connection_of(peer);
  const link::Outgoing message{.envelope = envelope, .pieces = {}, .wants_outcome = false};
  if (to == nullptr || !peer.shorts.empty() || !outbox_.write_short(peer, *to, message, nullptr)) return false;
  return true;
}

bool Transport::has_room(link::PeerHandle handle) {
  const std::size_t bytes = wire::shm_head_bytes(wire::ShmKind::whole);
  Peer& peer = peers_[handle];
  Connection* const to = connection_of(peer);
  if (to == nullptr || !peer.shorts.empty() || !peer.pending.has_room(1)) return false;
  return to->writer.reserve(bytes) != nullptr || (to->writer.look() && to->writer.reserve(bytes) != nullptr);
}

bool Transport::cancel(link::PeerHandle handle, link::Reference reference, std::uint64_t cookie) {
  Peer* const peer = peers_.find(handle);
  if (peer == nullptr || reference == 0) return false;
  if (!outcomes_.has_room(1)) [[unlikely]]
    return false;
  if (!Outbox::take_back(*peer, connection_of(*peer), reference, cookie)) return false;
  outcomes_.push({cookie, Status::canceled});
  return true;
}

std::optional<link::Outcome> Transport::end_early(std::uint32_t owner, const link::OperationHandle& name) {
  const std::uint32_t index = name.slot & ~link::kShortSlots;
  if (index >= peers_.size()) return std::nullopt;
  Peer& peer = peers_[index];
  // Number of messages sent since.
  const std::uint32_t since = static_cast<std::uint32_t>(peer.pending.last_number()) - name.generation;
  Pending* const pending = peer.pending.find(peer.pending.last_number() - since);
  if (pending == nullptr || pending->owner != owner) return std::nullopt;
  Connection* const to = connection_of(peer);
  const bool is_read = to != nullptr && to->writer.look() && pending->line <= to->writer.passed();
  const link::Outcome end{pending->cookie, is_read ? Status::ok : Status::canceled, owner, pending->length};
  pending->owner = Pending::kNobody;
  pending->length = Pending::kNoTicket;
  return end;
}

std::uint64_t Transport::line_behind(link::PeerHandle handle) {
  const Connection* const from = connection_of(peers_[handle]);
  if (from == nullptr) return 0;
  RingReader behind = from->reader;
  if (const auto record = behind.record()) behind.pass(record->body.size());
  return behind.read();
}

void Transport::end_line(link::PeerHandle handle, std::uint64_t line, Status status) {
  Peer* const peer = peers_.find(handle);
  if (peer == nullptr) return;
  std::size_t first = 0;
  for (std::size_t end = peer->pending.size(); first < end;) {  // binary search: lines ascend
    const std::size_t middle = first + (end - first) / 2;
    peer->pending[middle].line < line ? first = middle + 1 : end = middle;
  }
  for (; first < peer->pending.size() && peer->pending[first].line == line; ++first) {
    Pending& refused = peer->pending[first];
    const bool is_nobodys = refused.owner == Pending::kNobody;
    if (refused.owner == kOfPairs || (is_nobodys && refused.length != 0)) continue;
    if (!outcomes_.has_room(1)) [[unlikely]]
      continue;
    outcomes_.push({refused.cookie, status, refused.owner, refused.length});
    refused.owner = Pending::kNobody;
    refused.length = Pending::kNoTicket;
  }
}

}  // namespace fairlead::shm
