#pragma once
// All peers: found by handle and by token in O(1) without hashing, by address through a hash. A token's low bits are
// the slot, so a segment leads to its peer directly; the address is compared afterwards.

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "link/link.hpp"
#include "link/peer.hpp"

namespace fairlead::link {

class PeerTable {
 public:
  static constexpr std::uint32_t kSlotBits = 20;
  static constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << kSlotBits) - 1;

  explicit PeerTable(std::uint32_t peers_max) : peers_max_(peers_max) {}

  Peer* find(PeerHandle handle) const;
  Peer* find(const base::SocketAddress& address) const;
  /// Whose slot the token names; the token itself is not compared.
  Peer* find_slot_of(std::uint64_t token) const;

  /// Null if the table is full.
  Peer* add(const base::SocketAddress& address, std::uint32_t reassembly_slots);
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
  std::uint32_t peers_max_;
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<base::SocketAddress, std::uint32_t, base::SocketAddressHash> by_address_;
};

}  // namespace fairlead::link
