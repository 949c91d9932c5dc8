#pragma once
// Slots for messages that arrive in chunks, and for requests that arrived before their turn. Each kind has its own
// limit, so a peer that sends much of one kind leaves the slots of the others free.

#include <array>
#include <cstdint>

#include "base/slab.hpp"
#include "qp/arrival.hpp"
#include "transport/client.hpp"

namespace fairlead::qp {

class ArrivalPlaces {
 public:
  static constexpr std::uint32_t kNone = Arrival::kNone;
  /// The limits of requests, read data and datagrams, in the order of Arrival::Kind. Anyone who knows a queue key can
  /// send datagrams.
  static constexpr std::array<std::uint32_t, 3> kMost{1U << 16, 1U << 15, 1U << 12};

  /// Returns kNone at the limit of this kind.
  std::uint32_t acquire(Arrival::Kind kind) {
    if (left(kind) == 0) return kNone;
    const std::uint32_t slot = arrivals_.acquire();
    if (slot == kNone) return kNone;
    arrivals_[slot].kind = kind;
    ++used_[index_of(kind)];
    return slot;
  }
  void release(std::uint32_t slot) {
    arrivals_[slot].held.clear();
    --used_[index_of(arrivals_[slot].kind)];
    arrivals_.release(slot);
  }
  std::uint32_t left(Arrival::Kind kind) const { return kMost[index_of(kind)] - used_[index_of(kind)]; }

  Arrival& operator[](std::uint32_t slot) { return arrivals_[slot]; }
  Arrival* find(std::uint32_t slot, std::uint32_t generation) { return arrivals_.find(slot, generation); }
  std::uint32_t generation(std::uint32_t slot) const { return arrivals_.generation(slot); }

  /// Returns the word that the transports store with the message and pass on with later chunks
  /// (link::Delivery::target).
  std::uint64_t target_of(std::uint32_t slot) const {
    return transport::Cookie{transport::Client::queue_pairs, false, slot, generation(slot)}.word();
  }
  static std::uint32_t slot_of(std::uint64_t target) { return transport::Cookie::of(target).place; }
  Arrival* find_target(std::uint64_t target) { return find(slot_of(target), static_cast<std::uint32_t>(target >> 32)); }

 private:
  friend class PairsHandover;

  static std::size_t index_of(Arrival::Kind kind) { return static_cast<std::size_t>(kind); }

  base::Slab<Arrival> arrivals_{kMost[0] + kMost[1] + kMost[2]};
  std::array<std::uint32_t, 3> used_{};
};

}  // namespace fairlead::qp
