#include "shm/read_sections.hpp"

#include <atomic>
#include <new>

#include "base/barrier.hpp"

namespace fairlead::shm {

// Whoever has our greeting has the arena, though its answer may not have been read. Strangers have none, whatever they
// say.
const PairSide* ReadSections::reader_of(const Connection& peer) {
  if (!peer.sees_ours) return nullptr;
  if (peer.is_audible()) return peer.other;
  if (peer.state != Connection::State::asking) return nullptr;
  return &std::launder(reinterpret_cast<const PairPage*>(peer.memory.head()))->sides[1];
}

std::vector<SectionReader> ReadSections::readers() const {
  base::barrier_everywhere();
  std::vector<SectionReader> inside;
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot) {
    const PairSide* const reader = reader_of(peers_[slot]);
    if (reader == nullptr) continue;
    const std::uint64_t visit = reader->visits.load(std::memory_order_seq_cst);
    if (visit % 2 != 0) inside.push_back({slot, peers_[slot].generation, visit});
  }
  return inside;
}

bool ReadSections::has_left(const SectionReader& reader) const {
  const Connection& peer = peers_[reader.slot];
  const PairSide* const side = peer.generation == reader.generation ? reader_of(peer) : nullptr;
  return side == nullptr || side->visits.load(std::memory_order_acquire) != reader.visit;
}

bool ReadSections::is_held(std::uint64_t name) const noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot) {
    const PairSide* const reader = reader_of(peers_[slot]);
    if (reader != nullptr && reader->held.load(std::memory_order_acquire) == name) return true;
  }
  return false;
}

}  // namespace fairlead::shm
