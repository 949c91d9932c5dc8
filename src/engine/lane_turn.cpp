// The straight line of messages that have their turn in a sequence: from the caller's memory into the ring.

#include <cstring>

#include "base/copy_short.hpp"
#include "engine/lane.hpp"

namespace fairlead::engine {

bool Lane::send_turn(link::PeerHandle handle, const wire::LaneHead& head, const wire::LaneTurn& turn,
                     std::span<const std::byte> bytes, std::uint64_t cookie, base::Instant now) {
  constexpr std::size_t kBefore = wire::lane_head_bytes(wire::LaneKind::turn);
  const std::uint32_t index = handle.slot - kFirstSlot;
  if (index >= peers_.size() || bytes.size() > kWholeMax) [[unlikely]]
    return false;
  Peer& peer = *peers_[index];
  if (peer.generation != handle.generation || peer.hub_slot == kNone || !peer.shorts.empty()) [[unlikely]]
    return false;
  path::ShmPeer& to = hub_->peer(peer.hub_slot);
  std::byte* const body = to.writer.reserve(kBefore + bytes.size());
  if (body == nullptr) [[unlikely]]
    return false;
  std::memcpy(body, &head, sizeof head);
  std::memcpy(body + sizeof head, &turn, sizeof turn);
  if (!bytes.empty()) base::copy_short(body + kBefore, bytes.data(), bytes.size());
  to.writer.publish(kBefore + bytes.size(), to.reader.read());
  to.reader.told();
  to.alert();
  peer.pending.push({to.writer.written(), cookie, kOfFlows, static_cast<std::uint32_t>(bytes.size())});
  if (!peer.is_busy) [[unlikely]]
    make_busy(index, now);
  ++counters_.messages_sent;
  counters_.bytes_sent += bytes.size();
  return true;
}

}  // namespace fairlead::engine
