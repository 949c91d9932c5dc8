#include "shm/connection_table.hpp"

#include <algorithm>

namespace fairlead::shm {

std::uint32_t ConnectionTable::find(const base::SocketAddress& address) const {
  const auto found = by_address_.find(address);
  return found == by_address_.end() ? kNone : found->second;
}

std::uint32_t ConnectionTable::acquire() {
  const auto unused =
      std::ranges::find_if(peers_, [](const auto& peer) { return peer->state == Connection::State::closed; });
  const auto slot = static_cast<std::uint32_t>(unused - peers_.begin());
  if (slot >= std::min(peers_max_, DoorbellPage::kBits)) return kNone;
  if (unused == peers_.end()) peers_.push_back(std::make_unique<Connection>());
  return slot;
}

void ConnectionTable::name(std::uint32_t slot, const base::SocketAddress& address) {
  by_address_[address] = slot;
  peers_[slot]->address = address;
}

void ConnectionTable::release(std::uint32_t slot) {
  Connection& peer = *peers_[slot];
  const std::uint32_t generation = peer.generation + 1;
  const auto found = by_address_.find(peer.address);
  if (found != by_address_.end() && found->second == slot) by_address_.erase(found);
  peer = Connection();
  peer.generation = generation == 0 ? 1 : generation;
  ++releases_;
}

}  // namespace fairlead::shm
