#pragma once
// Memory for one put or one get, by whoever knows its key. It is used by a transfer that a peer asks for, or by a peer
// of this host that carries it out by itself where it reaches the memory (onesided/exposure_publisher.hpp). A record
// tells us afterwards, and the exposure ends.

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/core.hpp"
#include "engine/message_context.hpp"
#include "link/token_source.hpp"
#include "onesided/exposure_publisher.hpp"

namespace fairlead::engine {

class Exposures {
 public:
  static constexpr std::uint32_t kNone = Operations::kNone;

  Exposures(MessageContext& context, link::TokenSource& secrets);

  Status add(PortHandle port, const Exposure& exposure, OperationHandle& operation, std::uint64_t& key);
  /// Takes it for a transfer, which it is good for: from then on the key names nothing.
  Status take(std::uint64_t key, std::uint32_t port, OperationKind kind, std::uint64_t length, std::uint32_t& slot);
  /// Once a transfer has begun its real result comes.
  void cancel(std::uint32_t slot, base::Instant now);
  void complete(std::uint32_t slot, Status status, std::uint64_t length, base::Instant now);

  /// A peer says that it has carried it out. The slot of one that cannot end yet, as somebody else is still at it.
  std::uint32_t deliver_carried_out(const link::Delivery& delivery, base::Instant now);
  /// The same of one that a peer had claimed that is no more.
  std::uint32_t end_abandoned(const shm::Departure& gone, Status status, base::Instant now);
  /// What ended while a peer held it is tried again in each pass.
  bool is_withdrawing() const { return !withdrawing_.empty(); }
  /// As Engine::check(), of one.
  void check(std::uint32_t slot);
  void retry_withdrawals(base::Instant now);

 private:
  friend class MessagesHandover;

  static constexpr std::uint32_t kKeySlotBits = 20;

  /// Of one that was cancelled, or is used up, while a peer was at it.
  struct Withdrawal {
    std::uint64_t name = 0;     // of the operation
    onesided::Claimer claimer;  // of one that was cancelled
  };

  std::uint64_t make_key(std::uint32_t slot);
  bool is_right(const Operation& exposure, OperationKind kind, std::uint64_t length, Status& status);
  void publish(std::uint32_t slot);
  void hide(Operation& exposure);
  std::uint32_t find_done(const link::Delivery& delivery, std::uint64_t sender);
  std::uint32_t end_used(std::uint32_t slot, std::uint32_t user, Status status, std::uint64_t length,
                         base::Instant now);
  bool retry(Withdrawal& withdrawal, base::Instant now);

  MessageContext& context_;
  link::TokenSource& secrets_;
  onesided::ExposurePublisher publisher_;
  std::vector<Withdrawal> withdrawing_;
};

}  // namespace fairlead::engine
