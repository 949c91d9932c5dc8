#pragma once
// Collects consecutive posts to one queue pair or receive queue, and passes them to the engine together. Copies what
// they refer to. All applications use one object; it is empty between their turns.

#include <array>
#include <cstddef>
#include <cstdint>

#include "host/pair_inbox.hpp"
#include "qp/pair_core.hpp"

namespace fairlead::host {

class PairPosts {
 public:
  /// The target of the next posts. A change of target flushes earlier posts.
  struct Target {
    enum class Kind : std::uint8_t { nobody, sends, receives, queue };
    Kind kind = Kind::nobody;
    qp::PairHandle pair;
    qp::ReceiveQueueHandle queue;
    bool operator==(const Target&) const = default;
  };

  /// Return 0, or the error with which the engine refused a post.
  int add_send(qp::PairCore& core, const Target& target, const TakenRequest& taken, bool is_datagram);
  int add_receive(qp::PairCore& core, const Target& target, const TakenRequest& taken);
  int flush(qp::PairCore& core);
  /// Drops posts that were added but not flushed.
  void forget() noexcept {
    count_ = 0;
    bytes_ = 0;
  }

 private:
  static constexpr std::uint32_t kMost = 32;

  int turn_to(qp::PairCore& core, const Target& target);
  std::span<const verbs::Sge> keep_pieces(const TakenRequest& taken);

  Target target_;
  std::uint32_t count_ = 0;
  std::size_t bytes_ = 0;
  std::array<verbs::SendRequest, kMost> sends_;
  std::array<verbs::ReceiveRequest, kMost> receives_;
  std::array<verbs::AddressVector, kMost> addresses_;
  std::array<verbs::WindowBinding, kMost> bindings_;
  std::array<verbs::Sge, kMost> inlined_;
  alignas(verbs::Sge) std::array<std::byte, kMost * kPairRequestMost> kept_;
};

}  // namespace fairlead::host
