// The fast path of single short messages: copies a message from the caller's memory into the ring, if no message waits
// before it and there is room.

#include <cstring>

#include "base/copy_short.hpp"
#include "shm/transport.hpp"

namespace fairlead::shm {

/// Returns where to write a body of so many bytes. Returns null if the message must take the general path.
std::byte* Transport::begin_fast(link::PeerHandle handle, std::size_t bytes, Peer*& peer) {
  peer = fast_peer(handle);
  if (peer == nullptr || !peer->pending.has_room(1)) [[unlikely]]
    return nullptr;
  return connections_->peer(peer->connection_slot).writer.reserve(bytes);
}

/// Publishes the record. Returns the line after it, which the reader passes when it has read the record.
std::uint64_t Transport::end_fast(Peer& peer, std::size_t bytes, std::size_t payload) {
  Connection& to = connections_->peer(peer.connection_slot);
  to.writer.publish(bytes, to.reader.read());
  to.reader.told();
  to.alert();
  ++counters_.messages_sent;
  counters_.bytes_sent += payload;
  return to.writer.written();
}

bool Transport::send_turn(link::PeerHandle handle, const wire::ShmHead& head, const wire::ShmOrdered& turn,
                          std::span<const std::byte> bytes, std::uint64_t cookie, base::Instant now) {
  constexpr std::size_t kBefore = sizeof head + sizeof turn;
  if (bytes.size() > Outbox::kWholeMax) [[unlikely]]
    return false;
  Peer* peer = nullptr;
  std::byte* const body = begin_fast(handle, kBefore + bytes.size(), peer);
  if (body == nullptr) [[unlikely]]
    return false;
  wire::store_shm_head(body, head);
  std::memcpy(body + sizeof head, &turn, sizeof turn);
  if (!bytes.empty()) base::copy_short(body + kBefore, bytes.data(), bytes.size());
  const std::uint64_t line = end_fast(*peer, kBefore + bytes.size(), bytes.size());
  peer->pending.append().set(line, cookie, kOfPairs, bytes.size());
  if (!peer->is_busy) [[unlikely]]
    make_busy(handle.slot - kFirstSlot, now);
  return true;
}

}  // namespace fairlead::shm
