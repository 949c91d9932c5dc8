// What goes out through the transport.

#include "shm/transport.hpp"

namespace fairlead::shm {

Status Transport::submit(link::PeerHandle handle, const link::Outgoing& message, base::Instant now) {
  Peer* const found = peers_.find(handle);
  if (found == nullptr) [[unlikely]]
    return Status::stale;
  Peer& peer = *found;
  const std::uint32_t index = handle.slot - kFirstSlot;
  if (!message.wants_outcome && message.size > options_.copied_max) [[unlikely]]
    return Status::invalid;
  ++counters_.messages_sent;
  counters_.bytes_sent += message.size;
  Connection* const to = connection_of(peer);
  if (message.wants_outcome || to == nullptr) make_busy(index, now);
  const bool is_short = message.size <= Outbox::kWholeMax;
  if (to != nullptr && is_short && peer.shorts.empty() && outbox_.write_short(peer, *to, message, nullptr)) [[likely]] {
    to->alert();
    return Status::ok;
  }
  const Status status = outbox_.keep(peer, message);
  if (status != Status::ok) {
    --counters_.messages_sent;
    counters_.bytes_sent -= message.size;
  } else if (to != nullptr) {
    make_busy(index, now);
    if (!is_short) outbox_.pump(peer, *to);
  }
  return status;
}

bool Transport::has_room(link::PeerHandle handle) {
  const std::size_t bytes = wire::shm_head_bytes(wire::ShmKind::whole);
  Peer& peer = peers_[handle];
  Connection* const to = connection_of(peer);
  if (to == nullptr || !peer.shorts.empty()) return false;
  return to->writer.reserve(bytes) != nullptr || (to->writer.look() && to->writer.reserve(bytes) != nullptr);
}

bool Transport::is_on_its_way(std::uint32_t index, std::uint32_t number) {
  if (index >= peers_.size()) return false;
  Peer& peer = peers_[index];
  return !peer.pending.empty() &&
         static_cast<std::int32_t>(number - static_cast<std::uint32_t>(peer.pending.front().line)) >= 0;
}

bool Transport::cancel(link::PeerHandle handle, std::uint64_t cookie) {
  Peer* const peer = peers_.find(handle);
  if (peer == nullptr || !outcomes_.has_room(1) || !outbox_.take_back(*peer, cookie)) return false;
  outcomes_.push({cookie, Status::canceled});
  return true;
}

}  // namespace fairlead::shm
