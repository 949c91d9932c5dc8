#include "shm/transport_peer.hpp"

#include <new>
#include <utility>

namespace fairlead::shm {

std::uint32_t TransportPeers::add(const base::SocketAddress& address) try {
  const auto unused =
      std::ranges::find_if(peers_, [](const auto& peer) { return !peer->is_used && !peer->is_end_untold; });
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
  TransportPeer next;
  next.address = peer.address;
  next.is_end_untold = true;
  next.generation = peer.generation + 1 == 0 ? 1 : peer.generation + 1;
  next.shorts = std::move(peer.shorts);
  next.longs = std::move(peer.longs);
  next.pending = std::move(peer.pending);
  peer = std::move(next);
}

std::optional<link::Notice> TransportPeers::end_arriving(std::uint32_t index) {
  Arriving& arriving = peers_[index]->arriving;
  if (!arriving.is_under_way) return std::nullopt;
  return link::Notice{.kind = link::Notice::Kind::reassembly_lost,
                      .peer = handle_of(index),
                      .status = Status::refused,
                      .target = std::exchange(arriving, {}).target};
}

bool TransportPeer::give_up_pending(std::size_t number, std::uint64_t cookie) {
  Pending* const one = pending.find(number);
  if (one == nullptr || one->owner != Pending::kNobody || one->length != 0 || one->cookie != cookie) return false;
  one->length = Pending::kNoTicket;
  return true;
}

bool TransportPeer::is_owing() const {
  const auto any = [](const auto& all, const auto& is_wanted) {
    for (std::size_t i = 0; i < all.size(); ++i)
      if (is_wanted(all[i])) return true;
    return false;
  };
  const auto is_waiting = [](const Waiting& waiting) { return !waiting.is_void; };
  return any(shorts, is_waiting) || any(longs, is_waiting) ||
         any(pending, [&](const Pending& one) { return one.owner != Pending::kNobody || !has_ended(one); });
}

}  // namespace fairlead::shm
