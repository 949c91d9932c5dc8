// The straight lines of single short messages: from the caller's memory into the ring, if nothing waits before them and
// there is room.

#include <cstring>

#include "base/copy_short.hpp"
#include "shm/lane.hpp"

namespace fairlead::shm {

/// Where to write a body of so many bytes; null if it does not go straight.
std::byte* Lane::begin_straight(link::PeerHandle handle, std::size_t bytes, Peer*& peer) {
  peer = straight_peer(handle);
  if (peer == nullptr) [[unlikely]]
    return nullptr;
  return hub_->peer(peer->hub_slot).writer.reserve(bytes);
}

/// Shows it. The line at which the reader has passed it.
std::uint64_t Lane::end_straight(Peer& peer, std::size_t bytes, std::size_t payload) {
  ShmPeer& to = hub_->peer(peer.hub_slot);
  to.writer.publish(bytes, to.reader.read());
  to.reader.told();
  to.alert();
  ++counters_.messages_sent;
  counters_.bytes_sent += payload;
  return to.writer.written();
}

bool Lane::send_turn(link::PeerHandle handle, const wire::LaneHead& head, const wire::LaneTurn& turn,
                     std::span<const std::byte> bytes, std::uint64_t cookie, base::Instant now) {
  constexpr std::size_t kBefore = sizeof head + sizeof turn;
  if (bytes.size() > kWholeMax) [[unlikely]]
    return false;
  Peer* peer = nullptr;
  std::byte* const body = begin_straight(handle, kBefore + bytes.size(), peer);
  if (body == nullptr) [[unlikely]]
    return false;
  wire::store_lane_head(body, head);
  std::memcpy(body + sizeof head, &turn, sizeof turn);
  if (!bytes.empty()) base::copy_short(body + kBefore, bytes.data(), bytes.size());
  const std::uint64_t line = end_straight(*peer, kBefore + bytes.size(), bytes.size());
  peer->pending.append().set(line, cookie, kOfFlows, bytes.size());
  if (!peer->is_busy) [[unlikely]]
    make_busy(handle.slot - kFirstSlot, now);
  return true;
}

}  // namespace fairlead::shm
