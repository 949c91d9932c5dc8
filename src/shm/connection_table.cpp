#include "shm/connection_table.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace fairlead::shm {

std::uint64_t Connection::at() const noexcept {
  if (!sees_ours) return 0;
  const PairSide* side = nullptr;
  if (is_audible()) {
    side = other;
  } else if (state == State::asking) {
    side = &std::launder(reinterpret_cast<const PairPage*>(memory.head()))->sides[1];
  }
  return side == nullptr ? 0 : side->at.load(std::memory_order_acquire);
}

std::uint32_t ConnectionTable::find(const base::SocketAddress& address) const {
  const auto found = by_address_.find(address);
  return found == by_address_.end() ? kNone : found->second;
}

std::uint32_t ConnectionTable::acquire() {
  const auto unused = std::ranges::find_if(
      peers_, [](const auto& peer) { return peer->state == Connection::State::closed && peer->left_at == 0; });
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
  const std::uint64_t at = peer.at();
  if (Use::is_of_exposure(at)) ++departed_;
  const std::uint64_t left_at = Use::is_of_exposure(at) ? at : peer.left_at;
  const auto found = by_address_.find(peer.address);
  if (found != by_address_.end() && found->second == slot) by_address_.erase(found);
  peer = Connection();
  peer.generation = generation == 0 ? 1 : generation;
  peer.left_at = left_at;
}

std::optional<Departure> ConnectionTable::take_departed() {
  if (departed_ == 0) [[likely]]
    return std::nullopt;
  --departed_;
  const auto gone = std::ranges::find_if(peers_, [](const auto& peer) { return peer->left_at != 0; });
  return Departure{static_cast<std::uint32_t>(gone - peers_.begin()), std::exchange((*gone)->left_at, 0)};
}

}  // namespace fairlead::shm
