#pragma once
// Requests for an application's queue pairs as they arrive at the host engine. Each is copied once with all data that
// belongs to it. An incomplete request is kept until the rest arrives.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include <fairlead/error.hpp>
#include <fairlead/verbs/work_request.hpp>

#include "host/pairs_state.hpp"
#include "queue/consumer.hpp"

namespace fairlead::host {

struct TakenRequest {
  PairRequest head;
  std::span<const std::byte> body;  // pieces or bytes, aligned; valid until the next request is taken

  std::span<const verbs::Sge> pieces() const { return {reinterpret_cast<const verbs::Sge*>(body.data()), head.pieces}; }
  /// Returns the sum of its pieces' lengths.
  std::uint64_t named_bytes() const {
    std::uint64_t bytes = 0;
    for (const verbs::Sge& piece : pieces()) bytes += piece.length;
    return bytes;
  }
};

class PairInbox {
 public:
  static Result<PairInbox> create(std::span<std::byte> memory);
  /// Continues where the previous program in this process stopped.
  static Result<PairInbox> resume(std::span<std::byte> memory, const PairInboxState& state);
  PairInboxState save() const;

  /// Returns the next complete request.
  std::optional<TakenRequest> next();
  /// Returns consumed elements to the application.
  void hand_back() { requests_.hand_back(); }
  /// Compares with our own count of what was taken: the application can overwrite the one in the shared page.
  bool is_empty() const noexcept { return requests_.count() == 0; }
  /// Returns whether the application wrote what our library never writes. Nothing more is taken then.
  bool is_damaged() const noexcept { return is_damaged_ || requests_.status() == Status::invalid; }

 private:
  explicit PairInbox(queue::Consumer requests) : requests_(std::move(requests)) {}
  bool begin(const std::byte* element);

  queue::Consumer requests_;
  PairRequest head_;
  std::size_t wanted_ = 0, have_ = 0;  // bytes of the body
  bool has_head_ = false, is_damaged_ = false;
  alignas(verbs::Sge) std::array<std::byte, kPairRequestMost + sizeof(PairRequest)> body_;
};

}  // namespace fairlead::host
