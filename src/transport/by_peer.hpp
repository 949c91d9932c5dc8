#pragma once
// A value for each peer of the link and of the shm transport, indexed by slot. It grows within address space reserved
// for the maximum; pages are allocated as peers come. So no peer's value fails for want of memory.

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
  /// Returns null if the slot was never used.
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
