#pragma once
// Accounts for the host engine's memory for one application's posts, and the room for their completions.

#include <algorithm>
#include <bit>
#include <cstdint>

#include <fairlead/verbs/work_request.hpp>

#include "host/pair_layout.hpp"
#include "qp/completion_stream.hpp"
#include "qp/send_queue.hpp"

namespace fairlead::host {

class PairRoom {
 public:
  /// `bytes` includes the memory of the completions.
  struct Share {
    std::uint64_t bytes = 0, completions = 0;
  };

  static Share of_receives(std::uint32_t depth, std::uint32_t pieces) {
    const std::uint64_t each = 16 + std::uint64_t{std::max(pieces, 1U)} * sizeof(verbs::Sge) + sizeof(qp::PairEvent);
    return {.bytes = std::bit_ceil(std::uint64_t{depth}) * each, .completions = depth};
  }
  static Share of_queue(std::uint32_t depth, std::uint32_t pieces) {
    return {.bytes = of_receives(depth, pieces).bytes, .completions = 2 * std::uint64_t{depth}};
  }
  /// Returns the share of a queue pair. Shared receives are charged to their queue.
  static Share of_pair(const PairCall& call) {
    const std::uint64_t each = sizeof(qp::SendEntry) + std::uint64_t{call.max_send_sge} * sizeof(verbs::Sge) +
                               call.max_inline + sizeof(qp::PairEvent);
    Share share{.bytes = std::bit_ceil(std::uint64_t{call.max_send_wr}) * each, .completions = call.max_send_wr};
    if (call.shares_receives != 0) return share;
    const Share receives = of_receives(call.max_recv_wr, call.max_recv_sge);
    share.bytes += receives.bytes;
    share.completions += receives.completions;
    return share;
  }

  explicit PairRoom(std::uint64_t bytes_most) : bytes_most_(bytes_most) {}

  /// Sets the stream whose capacity reserve() grows. Call before all others.
  void serve(qp::CompletionStream& stream) { stream_ = &stream; }
  std::uint64_t bytes_most() const noexcept { return bytes_most_; }
  std::uint64_t bytes() const noexcept { return taken_.bytes; }

  bool has_bytes(std::uint64_t bytes) const { return bytes <= bytes_most_ && taken_.bytes <= bytes_most_ - bytes; }
  /// Makes room for more completions. Returns false if memory is short.
  bool reserve(std::uint64_t completions) {
    return stream_->capacity() >= taken_.completions + completions ||
           stream_->grow(static_cast<std::uint32_t>(taken_.completions + completions));
  }
  void take(const Share& share) {
    taken_.bytes += share.bytes;
    taken_.completions += share.completions;
  }
  void give_back(const Share& share) {
    taken_.bytes -= share.bytes;
    taken_.completions -= share.completions;
  }

 private:
  const std::uint64_t bytes_most_;
  qp::CompletionStream* stream_ = nullptr;
  Share taken_;
};

}  // namespace fairlead::host
