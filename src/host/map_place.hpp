#pragma once
// Room for one more entry of a hash map, taken beforehand: what cannot be undone is done once there is room to note it.

#include <utility>

namespace fairlead::host {

template <typename Map>
class MapPlace {
 public:
  /// Throws std::bad_alloc. No other entry is added until this one is, or is not needed any more.
  explicit MapPlace(Map& map) : map_(map) {
    map.reserve(map.size() + 1);
    Map one;
    one.try_emplace(typename Map::key_type{});
    node_ = one.extract(one.begin());
  }

  typename Map::mapped_type& fill(const typename Map::key_type& key, typename Map::mapped_type value) noexcept {
    node_.key() = key;
    node_.mapped() = std::move(value);
    return map_.insert(std::move(node_)).position->second;
  }

 private:
  Map& map_;
  typename Map::node_type node_;
};

}  // namespace fairlead::host
