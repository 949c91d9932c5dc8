#include "shm/transport_peer.hpp"

#include <new>
#include <utility>

namespace fairlead::shm {

std::uint32_t TransportPeers::add(const base::SocketAddress& address) try {
  const auto unused = std::ranges::find_if(peers_, [](const auto& peer) { return !peer->is_used; });
  const auto index = static_cast<std::uint32_t>(unused - peers_.begin());
  if (unused == peers_.end()) peers_.push_back(std::make_unique<TransportPeer>());
  by_address_[address] = index;
  peers_[index]->address = address;
  peers_[index]->is_used = true;
  return index;
} catch (const std::bad_alloc&) {
  return kNone;
}

void TransportPeers::connect(std::uint32_t index, std::uint32_t connection_slot) {
  by_connection_slot_[connection_slot] = index;
  peers_[index]->connection_slot = connection_slot;
}

std::uint32_t TransportPeers::disconnect(std::uint32_t connection_slot) {
  return std::exchange(by_connection_slot_[connection_slot], kNone);
}

void TransportPeers::forget(std::uint32_t index) {
  TransportPeer& peer = *peers_[index];
  by_address_.erase(peer.address);
  const base::SocketAddress address = peer.address;
  const std::uint32_t generation = peer.generation + 1;
  peer = TransportPeer();
  peer.address = address;
  peer.generation = generation == 0 ? 1 : generation;
}

}  // namespace fairlead::shm
