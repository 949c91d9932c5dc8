#include "shm/read_sections.hpp"

#include <atomic>

#include "base/barrier.hpp"

namespace fairlead::shm {

std::vector<SectionReader> ReadSections::readers(Withdrawn withdrawn) const {
  base::barrier_everywhere();
  std::vector<SectionReader> inside;
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot) {
    const std::uint64_t at = peers_[slot].at();
    if (withdrawn.is_used(at)) inside.push_back({slot, peers_[slot].generation, at});
  }
  return inside;
}

bool ReadSections::has_left(const SectionReader& reader) const {
  const Connection& peer = peers_[reader.slot];
  return peer.generation != reader.generation || peer.at() != reader.at;
}

bool ReadSections::is_used(Withdrawn withdrawn, std::uint32_t except) const noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::uint32_t slot = 0; slot < peers_.size(); ++slot)
    if (slot != except && withdrawn.is_used(peers_[slot].at())) return true;
  return false;
}

}  // namespace fairlead::shm
