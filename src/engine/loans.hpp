#pragma once
// Messages that are handed over in place, between engines of one host that show each other their memory
// (shm/arena.hpp): a record says where the message lies in the sender's memory. Whoever takes loans reads it there
// and gives it back later; for others the engine copies it into the posted buffer, once. The sender's operation ends
// when the message is given back, or its reader is gone.
//
// The reader's face holds the mapping, so the bytes stay readable whatever becomes of the sender.

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

  // The sender.
  /// False: it goes as a message, copied.
  bool lend(PortHandle port, const Send& send, OperationHandle& operation, Status& status, base::Instant now);
  /// Which is to be settled now; kNone if that was none.
  std::uint32_t deliver_given_back(const link::Delivery& delivery);
  /// The peer cannot reach our memory.
  void send_instead(std::uint32_t slot, base::Instant now);

  // The reader.
  void deliver(const link::Delivery& delivery, base::Instant now);
  LoanView view(std::uint64_t name) {
    const Taken& taken = taken_[slot_of(name)];
    return {taken.bytes, taken.memory};
  }
  void give_back(PortHandle port, std::uint64_t name, base::Instant now);
  void give_back_all(PortHandle port, base::Instant now);
  std::uint32_t taken() const { return taken_.used(); }

 private:
  static constexpr std::uint32_t kNone = Operations::kNone;

  /// A message in the memory of a peer of this host, which somebody here reads.
  struct Taken {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> memory;  // they lie in
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
  base::Slab<Taken> taken_;  // and not given back
};

}  // namespace fairlead::engine
