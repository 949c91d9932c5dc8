#pragma once
// Collects consecutive sends of one queue pair, and passes them to the engine together. Copies what they refer to. All
// applications use one object; it is empty between their turns.

#include <array>
#include <cstddef>
#include <cstdint>

#include "host/pair_inbox.hpp"
#include "qp/pair_core.hpp"

namespace fairlead::host {

class PairPosts {
 public:
  /// Adds a send of the queue pair. Those of another queue pair are flushed before. Returns 0, or the error with which
  /// the engine refused one of those.
  int add(qp::PairCore& core, qp::PairHandle pair, const TakenRequest& taken, bool is_datagram);
  /// Returns 0, or the error with which the engine refused a send.
  int flush(qp::PairCore& core);
  /// Drops sends that were added but not flushed.
  void forget() noexcept {
    count_ = 0;
    bytes_ = 0;
  }

 private:
  static constexpr std::uint32_t kMost = 32;

  int turn_to(qp::PairCore& core, qp::PairHandle pair);
  std::span<const std::byte> keep(const TakenRequest& taken);

  qp::PairHandle pair_;
  std::uint32_t count_ = 0;
  std::size_t bytes_ = 0;
  std::array<verbs::SendRequest, kMost> sends_;
  std::array<verbs::AddressVector, kMost> addresses_;
  std::array<verbs::WindowBinding, kMost> bindings_;
  std::array<verbs::Sge, kMost> inlined_;
  alignas(verbs::Sge) std::array<std::byte, kMost * kPairRequestMost> kept_;
};

}  // namespace fairlead::host
