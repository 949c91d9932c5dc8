#pragma once
// The live objects of a kind whose C structure has no handle: known by their address alone.

#include <mutex>
#include <unordered_set>
#include <vector>

namespace fairlead::ibverbs {

template <typename Object>
class PointerRegistry {
 public:
  void insert(Object* object) {
    const std::lock_guard guard(mutex_);
    all_.insert(object);
  }
  /// False if it was not there.
  bool erase(Object* object) {
    const std::lock_guard guard(mutex_);
    return all_.erase(object) != 0;
  }
  bool contains(Object* object) const {
    const std::lock_guard guard(mutex_);
    return all_.contains(object);
  }
  std::vector<Object*> all() const {
    const std::lock_guard guard(mutex_);
    return {all_.begin(), all_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_set<Object*> all_;
};

/// The one registry of a kind; never destroyed, as threads may use it while the process exits.
template <typename Object>
PointerRegistry<Object>& registry() {
  static auto* const registry = new PointerRegistry<Object>;
  return *registry;
}

}  // namespace fairlead::ibverbs
