#pragma once
// One-shot regions: memory for one put or one get, by whoever knows the key. A peer requests the transfer. A local peer
// that can access the memory performs it by itself (onesided/exposure_publisher.hpp); its record then ends the
// exposure.
//
// An owner may get keys in advance: blanks. It may hand out such a key before the engine knows the exposure. A transfer
// that comes earlier gets `again`, and its initiator repeats it (engine/repeated_transfers.hpp).

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
  /// Makes a blank. It has no event; cancel() ends it without one.
  Status add_blank(PortHandle port, OperationHandle& blank, std::uint64_t& key);
  bool has_blank(PortHandle port, OperationHandle blank);
  /// Makes the blank an exposure with its key. Returns `stale` if it is none of that port.
  Status fill_blank(PortHandle port, OperationHandle blank, const Exposure& exposure);
  /// Takes the exposure for a transfer that it permits. From then on the key names nothing. Returns `again` for a
  /// blank.
  Status take(std::uint64_t key, std::uint32_t port, OperationKind kind, std::uint64_t length, std::uint32_t& slot);
  /// Once a transfer has begun, its real result is reported instead.
  void cancel(std::uint32_t slot, base::Instant now);
  void complete(std::uint32_t slot, Status status, std::uint64_t length, base::Instant now);

  /// Handles a peer's record that it has carried out a transfer. Returns the slot if the exposure cannot end yet,
  /// because another peer still uses it; else kNone.
  std::uint32_t deliver_carried_out(const link::Delivery& delivery, base::Instant now);
  /// Does the same for an exposure that a lost peer had claimed.
  std::uint32_t end_abandoned(const shm::Departure& gone, Status status, base::Instant now);
  /// Each pass retries the withdrawal of exposures that a peer was using.
  bool is_withdrawing() const { return !withdrawing_.empty(); }
  /// Checks the invariants of one exposure, as Engine::check() does.
  void check(std::uint32_t slot);
  void retry_withdrawals(base::Instant now);

 private:
  friend class MessagesHandover;

  static constexpr std::uint32_t kKeySlotBits = 20;

  /// An exposure that was cancelled or used up while a peer was using it.
  struct Withdrawal {
    std::uint64_t name = 0;     // of the operation
    onesided::Claimer claimer;  // of a cancelled one
  };

  static bool is_valid(const Exposure& exposure);
  void fill(std::uint32_t slot, const Exposure& exposure);
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
