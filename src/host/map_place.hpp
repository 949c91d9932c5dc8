#pragma once
// Reserves room for one more entry of a hash map, so that a later insertion cannot fail. Use it before an action that
// cannot be undone.

#include <utility>

namespace fairlead::host {

template <typename Map>
class MapPlace {
 public:
  /// May throw std::bad_alloc. The caller adds no other entry until this one is added or dropped.
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
