#include "link/peer_table.hpp"

#include <utility>

namespace fairlead::link {

Peer* PeerTable::find(PeerHandle handle) const {
  if (handle.slot >= places_.size()) return nullptr;
  const Place& place = places_[handle.slot];
  return place.generation == handle.generation ? place.peer.get() : nullptr;
}

Peer* PeerTable::find(const base::SocketAddress& address) const {
  const auto found = by_address_.find(address);
  return found == by_address_.end() ? nullptr : places_[found->second].peer.get();
}

Peer* PeerTable::find_slot(std::uint32_t slot) const {
  return slot < places_.size() ? places_[slot].peer.get() : nullptr;
}

Peer* PeerTable::add(const base::SocketAddress& address, std::uint32_t reassembly_slots) {
  if (by_address_.size() >= peers_max_) return nullptr;
  auto peer = std::make_unique<Peer>(address, reassembly_slots);
  if (free_.empty()) add_place();
  const std::uint32_t slot = free_.back();
  by_address_.emplace(address, slot);
  free_.pop_back();
  return put(slot, std::move(peer));
}

Peer* PeerTable::add_at(std::uint32_t slot, std::uint32_t generation, const base::SocketAddress& address,
                        std::uint32_t reassembly_slots) {
  if (slot >= peers_max_ || find_slot(slot) != nullptr || find(address) != nullptr) return nullptr;
  auto peer = std::make_unique<Peer>(address, reassembly_slots);
  while (places_.size() <= slot) add_place();
  by_address_.emplace(address, slot);
  std::erase(free_, slot);
  places_[slot].generation = generation;
  return put(slot, std::move(peer));
}

void PeerTable::add_place() {
  // room for all slots, so that remove() never allocates
  if (free_.capacity() <= places_.size()) free_.reserve(2 * places_.size() + 1);
  places_.emplace_back();
  free_.push_back(static_cast<std::uint32_t>(places_.size() - 1));
}

Peer* PeerTable::put(std::uint32_t slot, std::unique_ptr<Peer> peer) {
  Place& place = places_[slot];
  place.peer = std::move(peer);
  place.peer->slot = slot;
  place.peer->generation = place.generation;
  return place.peer.get();
}

void PeerTable::remove(Peer& peer) {
  Place& place = places_[peer.slot];
  by_address_.erase(peer.address);
  free_.push_back(peer.slot);
  ++place.generation;
  place.peer.reset();
}

}  // namespace fairlead::link
