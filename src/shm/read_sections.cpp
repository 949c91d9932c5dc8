#include "shm/read_sections.hpp"

#include <atomic>
#include <new>

#include "base/barrier.hpp"

namespace fairlead::shm {

// Whoever has our greeting has the arena, though its answer may not have been read. Strangers have none, whatever they
// say.
std::uint64_t ReadSections::at_of(const Connection& peer) noexcept {
  if (!peer.sees_ours) return 0;
  const PairSide* side = nullptr;
  if (peer.is_audible()) {
    side = peer.other;
  } else if (peer.state == Connection::State::asking) {
    side = &std::launder(reinterpret_cast<const PairPage*>(peer.memory.head()))->sides[1];
  }
  return side == nullptr ? 0 : side->at.load(std::memory_order_acquire);
}

std::vector<SectionReader> ReadSections::readers(Withdrawn withdrawn) const {
  base::barrier_everywhere();
  std::vector<SectionReader> inside;
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot) {
    const std::uint64_t at = at_of(peers_[slot]);
    if (withdrawn.is_used(at)) inside.push_back({slot, peers_[slot].generation, at});
  }
  return inside;
}

bool ReadSections::has_left(const SectionReader& reader) const {
  const Connection& peer = peers_[reader.slot];
  return peer.generation != reader.generation || at_of(peer) != reader.at;
}

bool ReadSections::is_used(Withdrawn withdrawn) const noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot)
    if (withdrawn.is_used(at_of(peers_[slot]))) return true;
  return false;
}

}  // namespace fairlead::shm
