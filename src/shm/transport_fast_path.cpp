// The fast path of single short messages: copies a message from the caller's memory into the ring, if no message waits
// before it and there is room.

#include "base/copy_short.hpp"
#include "shm/transport.hpp"

namespace fairlead::shm {

bool Transport::send_turn(link::PeerHandle handle, const wire::ShmHead& head, const wire::ShmOrdered& turn,
                          std::span<const std::byte> bytes, std::uint64_t cookie, base::Instant now) {
  constexpr std::size_t kBefore = sizeof head + sizeof turn;
  if (bytes.size() > Outbox::kWholeMax) [[unlikely]]
    return false;
  Peer* const peer = fast_peer(handle);
  if (peer == nullptr || !peer->pending.has_room(1)) [[unlikely]]
    return false;
  Connection& to = connections_->peer(peer->connection_slot);
  std::byte* const body = to.writer.reserve(kBefore + bytes.size());
  if (body == nullptr) [[unlikely]]
    return false;
  wire::store_shm_head(body, head);
  wire::store_shm_ordered(body, turn);
  if (!bytes.empty()) base::copy_short(body + kBefore, bytes.data(), bytes.size());
  to.writer.publish(kBefore + bytes.size(), to.reader.read());
  to.reader.told();
  to.alert();
  ++counters_.messages_sent;
  counters_.bytes_sent += bytes.size();
  peer->pending.append().set(to.writer.written(), cookie, kOfPairs, bytes.size());
  if (!peer->is_busy) [[unlikely]]
    make_busy(handle.slot - kFirstSlot, now);
  return true;
}

}  // namespace fairlead::shm
