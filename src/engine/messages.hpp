#pragma once
// Messages, and bulk transfers to and from exposed memory, for the net API. A client of the engine
// (transport/client.hpp). It consists of these parts, each with its own state:
//
//   receives   posted buffers, and their matching with messages
//   exposures  memory that peers may put into or get from, once
//   transfers  puts and gets, requested and answered
//   awaited    operations that wait for a peer's answer
//   answers    our answers that wait for room in a transport
//   loans      messages by reference
//   local copies  long copies between ports of this engine, which take several turns
//   patience   cancelled operations that have not ended yet
//
// An operation lives from its submission to its final event. A short message has no operation if the transport accepts
// it at once: the transport copies it, and keeps only its cookie, owner and length. It has an operation if it waits for
// room in a ring, or if its sender requested the receiver's report.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>

#include "engine/answers.hpp"
#include "engine/awaited.hpp"
#include "engine/core.hpp"
#include "engine/exposures.hpp"
#include "engine/loans.hpp"
#include "engine/local_copies.hpp"
#include "engine/message_context.hpp"
#include "engine/patience.hpp"
#include "engine/receives.hpp"
#include "engine/transfers.hpp"
#include "transport/client.hpp"

namespace fairlead::engine {

class Messages {
 public:
  Messages(Ports& ports, transport::Transports* transports, const base::SocketAddress& address, std::uint64_t epoch,
           const EngineOptions& options, link::TokenSource& secrets)
      : context_(ports, transports, address, epoch, options),
        receives_(context_),
        exposures_(context_, secrets),
        answers_(context_),
        awaited_(context_),
        loans_(context_, receives_, answers_, awaited_),
        local_(context_, receives_, exposures_),
        transfers_(context_, exposures_, answers_, awaited_, local_),
        grace_(std::min(kGrace, context_.give_up_after())),
        patience_(context_.give_up_after()) {}

  // Submissions (core.hpp) -------------------------------------------------------------------------------------------

  Status post_receive(PortHandle port, const Receive& receive, OperationHandle& operation) {
    return receives_.post(port, receive, operation);
  }
  void set_spares(PortHandle port, const SparePlan& plan) { receives_.set_spares(port, plan); }
  SpareCounts spare_counts(PortHandle port) { return receives_.spare_counts(port); }
  Status send(PortHandle port, const Send& send, OperationHandle& operation, base::Instant now);
  /// Sends short messages to a known peer, as Link::send_short(). Returns how many parts were accepted; the caller
  /// continues with send().
  std::size_t send_short(PortHandle port, link::PeerHandle peer, std::uint32_t target_port,
                         std::span<const link::SendPart> parts, std::span<OperationHandle> operations,
                         base::Instant now);
  Status expose(PortHandle port, const Exposure& exposure, OperationHandle& operation, std::uint64_t& key) {
    return exposures_.add(port, exposure, operation, key);
  }
  /// For keys in advance.
  Exposures& exposures() { return exposures_; }
  Status transfer(PortHandle port, OperationKind kind, const Transfer& transfer, OperationHandle& operation,
                  base::Instant now) {
    return transfers_.submit(port, kind, transfer, operation, now);
  }
  /// Returns false if the operation has ended. Afterwards the transports may have outcomes to fetch.
  bool cancel(PortHandle port, OperationHandle operation, base::Instant now);
  /// Ends the short messages of a port over the network; those that were sent may still arrive. For closing a port.
  void cancel_short_of(PortHandle port, base::Instant now);
  /// Ends a cancelled operation by force if it has not ended in time: after the give-up time if peers access the memory
  /// directly, else after kGrace.
  void grant_patience(PortHandle port, OperationHandle operation, base::Instant now);
  /// Calls visit(handle) for each operation of a port.
  template <typename Visit>
  void for_each_of(PortHandle port, Visit&& visit) {
    context_.operations.for_each([&](std::uint32_t slot, const Operation& operation) {
      if (operation.port == port.slot) visit(context_.operations.handle_of(slot));
    });
  }
  /// Does the same for each posted spare of the port.
  template <typename Visit>
  void for_each_spare_of(PortHandle port, Visit&& visit) {
    for_each_of(port, [&](OperationHandle handle) {
      if (context_.operations[handle.slot].is_spare) visit(handle);
    });
  }
  /// Returns the message by reference that a completion names. Needs no lock.
  LoanView loan(std::uint64_t name) { return loans_.view(name); }
  void give_back(PortHandle port, std::uint64_t name, base::Instant now) { loans_.give_back(port, name, now); }
  void give_back_all(PortHandle port, base::Instant now) { loans_.give_back_all(port, now); }
  /// Makes an operation for a message that another client sends from the caller's memory; the outcome ends it. Returns
  /// its name, or 0 if there are too many operations.
  std::uint64_t track_send(PortHandle port, link::PeerHandle peer, const RemotePort& to, std::uint64_t length,
                           std::uint64_t cookie);
  link::Reference* reference_of(std::uint64_t name) { return &context_.operations[slot_of(name)].reference; }
  void untrack_send(std::uint64_t name) { context_.operations.release(slot_of(name)); }

  // Interface of a transport client (transport/client.hpp) ------------------------------------------------------------

  void deliver(const link::Delivery& delivery, base::Instant now);
  void end_outcome(const link::Outcome& outcome, base::Instant now);
  void end_short(const link::Outcome& end, base::Instant now);
  void end_arrival(std::uint64_t target, Status status, base::Instant now);
  /// Ends everything that waits for the peer.
  void end_peer(link::PeerHandle peer, Status status, base::Instant now);
  /// Ends exposures that departed peers of this host had claimed.
  void end_abandoned(Status status, base::Instant now);
  /// Ends cancelled operations whose time is over.
  void expire(base::Instant now) {
    if (!grace_.is_empty()) [[unlikely]]
      end_impatient(grace_, now);
    if (!patience_.is_empty()) [[unlikely]]
      end_impatient(patience_, now);
  }
  /// Retries what waits.
  void progress(base::Instant now);
  /// Returns whether copies inside this engine are unfinished; copy_on() continues them, in each pass.
  bool is_copying() const { return !local_.is_empty(); }
  void copy_on(base::Instant now) { local_.progress(now); }
  /// Returns whether answers wait for room or a peer delays a withdrawal; each pass retries them.
  bool is_retrying() const { return !answers_.is_empty() || exposures_.is_withdrawing() || transfers_.is_repeating(); }
  bool is_owing() const { return !answers_.is_empty(); }
  base::Instant next_deadline() const {
    return std::min({awaited_.next_deadline(), grace_.next_deadline(), patience_.next_deadline()});
  }
  bool is_awaiting(std::uint32_t peer_slot) { return awaited_.has(peer_slot); }
  /// Returns whether something waits for the peer, or an answer for it.
  bool is_using(link::PeerHandle peer) {
    return awaited_.has(peer.slot) || answers_.is_any_for(peer) || loans_.is_any_of(peer);
  }
  /// Checks invariants, as Engine::check() does. Counts the operations of each port in `of_port`, by slot.
  void check(std::vector<std::uint32_t>& of_port);

  EngineCounters& counters() { return context_.counters; }
  const EngineCounters& counters() const { return context_.counters; }
  /// How much of the bounded tables is in use; all zero when nothing is pending.
  struct Use {
    std::uint32_t operations = 0;
    std::uint32_t placements = 0;  // messages that arrive in chunks, or wait behind such a message
    std::uint32_t answers = 0;     // answers that wait for room in a transport
    std::uint32_t loans = 0;       // messages in peers' memory that were not given back yet
  };
  Use use() const {
    return {context_.operations.used(), context_.placements.used(), static_cast<std::uint32_t>(answers_.size()),
            loans_.taken()};
  }

 private:
  friend class MessagesHandover;

  static constexpr std::uint32_t kNone = Operations::kNone;
  static constexpr std::uint64_t kLong = 64 * 1024;  // bytes; longer messages are refused if no buffer takes them
  static constexpr base::Duration kGrace = std::chrono::microseconds(500);

  // messages_submit.cpp
  void send_loopback(std::uint32_t slot, const Send& send, base::Instant now);
  Status send_by_reference(std::uint32_t slot, const Send& send, base::Instant now);
  bool cancel_short(PortHandle port, OperationHandle name, base::Instant now);
  void cancel_kind(Operation& operation, OperationHandle name, base::Instant now);
  void forget(std::uint32_t slot, base::Instant now);

  // messages.cpp
  void place(const link::Delivery& delivery, std::uint32_t slot, std::uint64_t offset, base::Instant now);
  void place_chunk(const link::Delivery& delivery, std::uint32_t placement, base::Instant now);
  bool has_place_for(const link::Delivery& delivery);
  void drop_chunk(const link::Delivery& delivery, std::uint32_t placement, base::Instant now);
  void end_placed(const link::Delivery& delivery, std::uint32_t slot, base::Instant now);
  void deliver_message(const link::Delivery& delivery, base::Instant now);
  void deliver_answer(const link::Delivery& delivery, base::Instant now);
  void deliver_told(const link::Delivery& delivery, base::Instant now);
  void tell(const link::Delivery& delivery, bool is_taken, base::Instant now);
  Status refusal(std::uint32_t target_port, std::uint64_t size, bool is_asked);
  void settle(std::uint32_t slot, base::Instant now);
  void end_impatient(Patience& patience, base::Instant now);
  void await_others(std::uint32_t exposure, base::Instant now);
  void end_torn(std::uint32_t slot, Status status, base::Instant now);
  void take_readable(std::uint32_t slot, base::Instant now);
  void end_by_force(std::uint32_t slot, base::Instant now);

  MessageContext context_;
  Receives receives_;
  Exposures exposures_;
  Answers answers_;
  Awaited awaited_;
  Loans loans_;
  LocalCopies local_;
  Transfers transfers_;
  Patience grace_;     // for cancelled operations that a transport still fills or sends
  Patience patience_;  // for exposures that a peer of this host may still access
};

}  // namespace fairlead::engine
