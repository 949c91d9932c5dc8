#pragma once
// The places of messages that come in chunks and of requests that came too early. Each kind has a bound of its own: who
// sends much of one kind does not take the room of the others.

#include <array>
#include <cstdint>

#include "base/slab.hpp"
#include "qp/flow.hpp"

namespace fairlead::qp {

class FlowPlaces {
 public:
  static constexpr std::uint32_t kNone = base::Slab<Waiting>::kNone;
  /// Of requests, of the data of reads, of datagrams (which anybody may send who knows a queue key).
  static constexpr std::array<std::uint32_t, 3> kMost{1U << 16, 1U << 15, 1U << 12};

  /// kNone at the bound of this kind.
  std::uint32_t acquire(Waiting::Kind kind) {
    if (left(kind) == 0) return kNone;
    const std::uint32_t slot = waiting_.acquire();
    if (slot == kNone) return kNone;
    waiting_[slot].kind = kind;
    ++used_[index_of(kind)];
    return slot;
  }
  void release(std::uint32_t slot) {
    waiting_[slot].held.clear();
    --used_[index_of(waiting_[slot].kind)];
    waiting_.release(slot);
  }
  std::uint32_t left(Waiting::Kind kind) const { return kMost[index_of(kind)] - used_[index_of(kind)]; }

  Waiting& operator[](std::uint32_t slot) { return waiting_[slot]; }
  std::uint32_t generation(std::uint32_t slot) const { return waiting_.generation(slot); }
  Waiting* find(std::uint32_t slot, std::uint32_t generation) { return waiting_.find(slot, generation); }

 private:
  static std::size_t index_of(Waiting::Kind kind) { return static_cast<std::size_t>(kind); }

  base::Slab<Waiting> waiting_{kMost[0] + kMost[1] + kMost[2]};
  std::array<std::uint32_t, 3> used_{};
};

}  // namespace fairlead::qp
