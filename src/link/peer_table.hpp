#pragma once
// All peers: found by handle, or by the slot that a segment names, in O(1) without hashing; by address through a hash.
// The slot is no secret: token and address are compared afterwards.

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "link/link.hpp"
#include "link/peer.hpp"

namespace fairlead::link {

class PeerTable {
 public:
  static constexpr std::uint32_t kPlacesMost = 1U << 20;
  static_assert(kPlacesMost <= wire::kSlotsMost);

  /// `seed`: a secret, so that nobody can choose addresses that meet in one bucket.
  PeerTable(std::uint32_t peers_max, std::uint64_t seed)
      : peers_max_(peers_max), by_address_(0, base::SocketAddressHash{seed}) {}

  Peer* find(PeerHandle handle) const;
  Peer* find(const base::SocketAddress& address) const;
  /// Who has this slot, or nobody.
  Peer* find_slot(std::uint32_t slot) const;

  /// Null if the table is full. Where there is no memory it throws, and nothing has changed.
  Peer* add(const base::SocketAddress& address, std::uint32_t reassembly_slots);
  /// The same at a place of the caller's choice; null also if that, or the address, is taken.
  Peer* add_at(std::uint32_t slot, std::uint32_t generation, const base::SocketAddress& address,
               std::uint32_t reassembly_slots);
  void remove(Peer& peer);

  std::size_t size() const { return by_address_.size(); }
  /// To walk over all: slots() places, some of them empty.
  std::uint32_t slots() const { return static_cast<std::uint32_t>(places_.size()); }
  Peer* at(std::uint32_t slot) { return places_[slot].peer.get(); }
  const Peer* at(std::uint32_t slot) const { return places_[slot].peer.get(); }
  static PeerHandle handle(const Peer& peer) { return {peer.slot, peer.generation}; }

 private:
  struct Place {
    std::unique_ptr<Peer> peer;
    std::uint32_t generation = 0;
  };
  void add_place();
  Peer* put(std::uint32_t slot, std::unique_ptr<Peer> peer);

  std::uint32_t peers_max_;
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<base::SocketAddress, std::uint32_t, base::SocketAddressHash> by_address_;
};

}  // namespace fairlead::link
