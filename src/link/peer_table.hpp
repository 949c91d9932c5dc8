#pragma once
// The table of all peers. A handle, or the slot that a segment names, finds a peer in O(1) without hashing; an address
// finds it through a hash. The slot is no secret: the caller compares token and address afterwards.

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

  /// `seed`: a secret, so that no sender can choose addresses that collide.
  PeerTable(std::uint32_t peers_max, std::uint64_t seed)
      : peers_max_(peers_max), by_address_(0, base::SocketAddressHash{seed}) {}

  Peer* find(PeerHandle handle) const;
  Peer* find(const base::SocketAddress& address) const;
  /// Returns the peer in this slot, or null.
  Peer* find_slot(std::uint32_t slot) const;

  /// Adds a peer; returns null if the table is full. Throws if there is no memory, and then nothing has changed.
  Peer* add(const base::SocketAddress& address, std::uint32_t reassembly_slots);
  /// Adds a peer in a slot of the caller's choice. Returns null also if the slot or the address is taken.
  Peer* add_at(std::uint32_t slot, std::uint32_t generation, const base::SocketAddress& address,
               std::uint32_t reassembly_slots);
  void remove(Peer& peer);

  std::size_t size() const { return by_address_.size(); }
  /// For iteration over all peers: slots() places, some of them empty.
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
