#pragma once
// Messages by reference ("loans") between local engines that share memory (shm/arena.hpp). A record says where the
// message lies in the sender's memory. A receiver that takes loans reads it there and gives it back later. For other
// receivers, the engine copies it once, into the posted buffer. The sender's operation ends when the message is given
// back or its reader is gone.
//
// The reader holds the mapping, so the bytes stay readable whatever happens to the sender.

#include <cstdint>
#include <memory>
#include <span>

#include "engine/answers.hpp"
#include "engine/awaited.hpp"
#include "engine/core.hpp"
#include "engine/message_context.hpp"
#include "engine/receives.hpp"

namespace fairlead::engine {

class Loans {
 public:
  Loans(MessageContext& context, Receives& receives, Answers& answers, Awaited& awaited)
      : context_(context),
        receives_(receives),
        answers_(answers),
        awaited_(awaited),
        taken_(static_cast<std::uint32_t>(context.options.get(Option::operations_max))) {}

  // Sender's side.
  /// Returns false if the message must be copied and sent instead.
  bool lend(PortHandle port, const Send& send, OperationHandle& operation, Status& status, base::Instant now);
  /// Returns the slot of the operation to end; kNone if the record names none.
  std::uint32_t deliver_given_back(const link::Delivery& delivery);
  /// Sends the message by copy, because the peer cannot access our memory.
  void send_instead(std::uint32_t slot, base::Instant now);

  // Reader's side.
  void deliver(const link::Delivery& delivery, base::Instant now);
  LoanView view(std::uint64_t name) {
    const Taken& taken = taken_[slot_of(name)];
    return {taken.bytes, taken.memory};
  }
  void give_back(PortHandle port, std::uint64_t name, base::Instant now);
  void give_back_all(PortHandle port, base::Instant now);
  std::uint32_t taken() const { return taken_.used(); }
  /// Returns whether a loan of this peer has not been given back.
  bool is_any_of(link::PeerHandle peer) {
    bool is_any = false;
    taken_.for_each([&](std::uint32_t, const Taken& loan) { is_any |= loan.peer == peer; });
    return is_any;
  }

 private:
  static constexpr std::uint32_t kNone = Operations::kNone;

  /// A message in the memory of a local peer that a reader here holds.
  struct Taken {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> memory;  // the memory in which they lie
    std::uint32_t port = 0;              // slot
    link::PeerHandle peer;
    std::uint64_t cookie = 0;
  };

  std::optional<std::uint64_t> place_of(const Send& send, base::Instant now, link::PeerHandle& peer);
  void hand_over(const link::Delivery& delivery, const Taken& lent, base::Instant now);
  bool hand_over_in_place(const Receives::Match& match, const Taken& lent, const RemotePort& source, base::Instant now);
  void tell_given_back(link::PeerHandle peer, std::uint64_t cookie, Status status, base::Instant now);
  void end(std::uint32_t slot, base::Instant now);

  MessageContext& context_;
  Receives& receives_;
  Answers& answers_;
  Awaited& awaited_;
  base::Slab<Taken> taken_;  // loans not given back yet
};

}  // namespace fairlead::engine
