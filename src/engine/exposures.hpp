#pragma once
// Memory for one put or one get, by whoever knows its key. Peers of this host carry it out by themselves where they
// reach the memory: it is published in the table that they see (shm/shared_tables.hpp), and outside the arena also in
// records that only we can write. A record tells us afterwards, and the exposure ends.
//
// Whoever wants a published exposure claims it in the table: one succeeds. The owner withdraws it likewise, so nobody
// writes to what has been withdrawn. If somebody had claimed it, or it lies outside the arena, it ends only when nobody
// says that it is at it (docs/one-sided.md), and as what the claimer told before it left.

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/core.hpp"
#include "engine/message_context.hpp"
#include "link/token_source.hpp"
#include "shm/publish_count.hpp"

namespace fairlead::shm {
struct Departure;
struct OwnedExposure;
struct PublishedExposure;
}  // namespace fairlead::shm

namespace fairlead::engine {

class Exposures {
 public:
  static constexpr std::uint32_t kNone = Operations::kNone;

  Exposures(MessageContext& context, link::TokenSource& secrets) : context_(context), secrets_(secrets) {}

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
  void retry_withdrawals(base::Instant now);

 private:
  static constexpr std::uint32_t kKeySlotBits = 20;

  std::uint64_t make_key(std::uint32_t slot);
  /// Of one that was cancelled, or is used up, while a peer was at it.
  struct Withdrawal {
    std::uint64_t name = 0;          // of the operation
    std::uint64_t taker = 0;         // the peer that had claimed it, as it is called in the table; 0: none
    std::uint32_t generation = 0;    // of that peer's slot
    std::uint64_t ring_read_at = 0;  // when it had left, and so told what it has done
  };

  bool is_right(const Operation& exposure, OperationKind kind, std::uint64_t length, Status& status);
  void publish(std::uint32_t slot);
  bool withdraw(std::uint32_t slot);
  void hide(std::uint32_t slot);
  shm::PublishedExposure& published(std::uint64_t key);
  shm::OwnedExposure& own_record(std::uint64_t key);
  bool may_live(std::uint64_t name);
  bool is_held_by_calls(const Operation& exposure, std::uint32_t except = kNone);
  std::uint32_t find_done(const link::Delivery& delivery);
  std::uint32_t end_used(std::uint32_t slot, std::uint32_t user, Status status, std::uint64_t length,
                         base::Instant now);
  void close(const Operation& exposure);
  bool retry(Withdrawal& withdrawal, base::Instant now);
  std::optional<Status> end_of(Withdrawal& withdrawal, const Operation& exposure);

  MessageContext& context_;
  link::TokenSource& secrets_;
  std::vector<std::uint32_t> published_;  // in the table that peers of this host see, by place; made when needed
  shm::PublishCount publications_;
  std::vector<Withdrawal> withdrawing_;
};

}  // namespace fairlead::engine
