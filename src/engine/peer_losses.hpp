#pragma once
// The most recent ended associations with other engines, for threads that wait for a reply. Each reader remembers its
// position. The count is readable without the engine's lock.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
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

  /// Returns the kept losses, the earliest first.
  std::vector<PeerLoss> save() const {
    std::vector<PeerLoss> saved;
    std::uint64_t seen = 0;
    for (PeerLoss loss; next(seen, loss);) saved.push_back(loss);
    return saved;
  }
  /// Continues after `count` losses, of which these are the last. Returns false if there are too many, or their marks
  /// are not those.
  bool restore(std::uint64_t count, std::span<const PeerLoss> last) {
    if (last.size() != std::min(count, ActivePorts::kLossesKept)) return false;
    kept_.resize(last.size());
    for (std::size_t i = 0; i < last.size(); ++i) {
      const std::uint64_t mark = count - last.size() + i + 1;
      if (last[i].mark != mark || last[i].status > Status::system) return false;
      kept_[(mark - 1) % ActivePorts::kLossesKept] = last[i];
    }
    count_.store(count, std::memory_order_release);
    return true;
  }

 private:
  std::vector<PeerLoss> kept_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace fairlead::engine
