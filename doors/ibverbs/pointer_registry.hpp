#pragma once
// The live objects of a kind whose C structure has no handle. An object is identified by its address alone.

#include <deque>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "doors/ibverbs/call.hpp"

namespace fairlead::ibverbs {

template <typename Object>
class PointerRegistry {
 public:
  void insert(Object* object) {
    const std::lock_guard guard(mutex_);
    all_.insert(object);
  }
  /// Removes the object and waits until no thread uses it. Returns false if it was not there.
  bool erase(Object* object) {
    {
      const std::lock_guard guard(mutex_);
      if (all_.erase(object) == 0) return false;
    }
    ThreadUses::wait_until_unused(object);
    return true;
  }
  /// Returns whether the object is live. If so, it stays valid until the Call ends.
  bool contains(Object* object) const {
    const std::lock_guard guard(mutex_);
    return all_.contains(object) && ThreadUses::mine().note(object);
  }
  /// Keeps the memory of the last kResting erased objects, so that a stale pointer does not name a new object
  /// meanwhile.
  void rest(Object* erased) {
    const std::lock_guard guard(mutex_);
    resting_.emplace_back(erased);
    if (resting_.size() > kResting) resting_.pop_front();
  }
  std::vector<Object*> all() const {
    const std::lock_guard guard(mutex_);
    return {all_.begin(), all_.end()};
  }

 private:
  static constexpr std::size_t kResting = 64;

  mutable std::mutex mutex_;
  std::unordered_set<Object*> all_;
  std::deque<std::unique_ptr<Object>> resting_;  // oldest first
};

/// Returns the only registry of a kind. Never destroyed, because threads may use it while the process exits.
template <typename Object>
PointerRegistry<Object>& registry() {
  static auto* const registry = new PointerRegistry<Object>;
  return *registry;
}

}  // namespace fairlead::ibverbs
