#pragma once
// Posts that follow each other to one queue pair or receive queue, on their way to the engine at once: what they refer
// to is copied here. One for all applications: it is empty before another has its turn.

#include <array>
#include <cstddef>
#include <cstdint>

#include "host/pair_inbox.hpp"
#include "qp/pair_core.hpp"

namespace fairlead::host {

class PairPosts {
 public:
  /// Where the next ones go; what was added before is passed on.
  struct Target {
    enum class Kind : std::uint8_t { nobody, sends, receives, queue };
    Kind kind = Kind::nobody;
    qp::PairHandle pair;
    qp::ReceiveQueueHandle queue;
    bool operator==(const Target&) const = default;
  };

  /// False if any is not taken: the application has posted what nobody takes.
  bool add_send(qp::PairCore& core, const Target& target, const TakenRequest& taken, bool is_datagram);
  bool add_receive(qp::PairCore& core, const Target& target, const TakenRequest& taken);
  bool flush(qp::PairCore& core);
  /// What was added and not passed on.
  void forget() noexcept {
    count_ = 0;
    bytes_ = 0;
  }

 private:
  static constexpr std::uint32_t kMost = 32;

  bool turn_to(qp::PairCore& core, const Target& target);
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
