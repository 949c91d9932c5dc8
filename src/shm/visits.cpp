#include "shm/visits.hpp"

#include <atomic>
#include <new>

#include "base/barrier.hpp"

namespace fairlead::shm {

// Whoever has our greeting has the arena, though its answer may not have been read. Strangers have none, whatever they
// say.
const ShmSide* ShmVisits::visitor_of(const ShmPeer& peer) {
  if (!peer.sees_ours) return nullptr;
  if (peer.is_audible()) return peer.other;
  if (peer.state != ShmPeer::State::asking) return nullptr;
  return &std::launder(reinterpret_cast<const ShmPairPage*>(peer.memory.head()))->sides[1];
}

std::vector<ShmVisitor> ShmVisits::visitors() const {
  base::barrier_everywhere();
  std::vector<ShmVisitor> inside;
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot) {
    const ShmSide* const visitor = visitor_of(peers_[slot]);
    if (visitor == nullptr) continue;
    const std::uint64_t visit = visitor->visits.load(std::memory_order_seq_cst);
    if (visit % 2 != 0) inside.push_back({slot, peers_[slot].generation, visit});
  }
  return inside;
}

bool ShmVisits::has_left(const ShmVisitor& visitor) const {
  const ShmPeer& peer = peers_[visitor.slot];
  const ShmSide* const side = peer.generation == visitor.generation ? visitor_of(peer) : nullptr;
  return side == nullptr || side->visits.load(std::memory_order_acquire) != visitor.visit;
}

bool ShmVisits::is_held(std::uint64_t name) const noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot) {
    const ShmSide* const visitor = visitor_of(peers_[slot]);
    if (visitor != nullptr && visitor->held.load(std::memory_order_acquire) == name) return true;
  }
  return false;
}

}  // namespace fairlead::shm
