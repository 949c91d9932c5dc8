#pragma once
// A value for each peer of the link and of the shm transport, by slot; grows with the slots, within what was reserved
// for all that there may be: address space, of which pages are taken as peers come. So nothing of a peer finds no
// memory.

#include <cstdint>
#include <vector>

#include "shm/transport.hpp"

namespace fairlead::transport {

template <typename T>
class ByPeer {
 public:
  explicit ByPeer(std::uint32_t link_peers_max) {
    values_[0].reserve(link_peers_max);
    values_[1].reserve(shm::DoorbellPage::kBits);
  }

  T& operator[](std::uint32_t slot) {
    std::vector<T>& values = values_[way_of(slot)];
    const std::uint32_t place = place_of(slot);
    if (place >= values.size()) [[unlikely]]
      values.resize(place + 1);
    return values[place];
  }
  /// Null if there was never one.
  T* find(std::uint32_t slot) {
    std::vector<T>& values = values_[way_of(slot)];
    const std::uint32_t place = place_of(slot);
    return place < values.size() ? &values[place] : nullptr;
  }
  std::vector<T>& of_link() { return values_[0]; }

 private:
  static std::size_t way_of(std::uint32_t slot) { return slot >= shm::Transport::kFirstSlot ? 1 : 0; }
  static std::uint32_t place_of(std::uint32_t slot) { return slot & (shm::Transport::kFirstSlot - 1); }

  std::vector<T> values_[2];
};

}  // namespace fairlead::transport
