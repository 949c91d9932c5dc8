#pragma once
// The most recent ended associations with other engines, for threads that wait for a reply. Each reader remembers its
// position. The count is readable without the engine's lock.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/active.hpp"

namespace fairlead::engine {

class PeerLosses {
 public:
  PeerLosses() { kept_.reserve(ActivePorts::kLossesKept); }

  void add(const base::SocketAddress& engine, std::uint64_t way, Status status, bool has_left) {
    const std::uint64_t mark = count() + 1;
    if (kept_.size() < ActivePorts::kLossesKept) kept_.emplace_back();  // within the reserved capacity
    kept_[(mark - 1) % ActivePorts::kLossesKept] = {engine, status, has_left, way, mark};
    count_.store(mark, std::memory_order_release);
  }
  std::uint64_t count() const { return count_.load(std::memory_order_acquire); }

  bool next(std::uint64_t& seen, PeerLoss& loss) const {
    const std::uint64_t last = count();
    if (seen >= last) return false;
    seen = std::max(seen, last - kept_.size());
    loss = kept_[seen % ActivePorts::kLossesKept];
    ++seen;
    return true;
  }

 private:
  std::vector<PeerLoss> kept_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace fairlead::engine
