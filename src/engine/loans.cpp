#include "engine/loans.hpp"

#include <utility>

#include "onesided/shared_tables.hpp"

namespace fairlead::engine {

// Sender -------------------------------------------------------------------------------------------------------------

/// Returns the place of the message in our arena, if the peer maps it.
std::optional<std::uint64_t> Loans::place_of(const Send& send, base::Instant now, link::PeerHandle& peer) {
  shm::Transport* const transport = context_.shm_transport();
  shm::Arena* const arena = transport != nullptr ? transport->connections().arena() : nullptr;
  if (arena == nullptr || send.part.memory.size() != 1 || send.part.length == 0 ||
      send.part.length > onesided::kCarriedOutMax)
    return std::nullopt;
  const auto place = arena->find({static_cast<const std::byte*>(send.part.memory[0].iov_base), send.part.length});
  if (!place || context_.transports->resolve(send.to.engine, now, peer) != Status::ok) return std::nullopt;
  return shm::Transport::has(peer) && transport->mapped_peer(peer) != nullptr ? place : std::nullopt;
}

bool Loans::lend(PortHandle handle, const Send& send, OperationHandle& handle_out, Status& status, base::Instant now) {
  link::PeerHandle peer;
  const auto place = place_of(send, now, peer);
  if (!place) return false;
  const std::uint32_t slot = context_.operations.make(OperationKind::loan, handle, send.part.cookie);
  status = Status::no_memory;
  if (slot == kNone) return true;
  Operation& operation = context_.operations[slot];
  operation.memory = send.part.memory;
  operation.length = send.part.length;
  operation.other = send.to;
  operation.peer = peer;
  operation.is_answer_pending = operation.is_link_pending = true;
  const std::uint64_t name = context_.operations.name_of(slot);
  status = context_.transports->submit(peer,
                                       {.envelope = {.operation = wire::Operation::lent,
                                                     .source_port = context_.ports[handle.slot].number,
                                                     .target_port = send.to.port,
                                                     .cookie = name,
                                                     .offset = *place,
                                                     .a = send.part.length},
                                        .pieces = {},
                                        .cookie = context_.operations.cookie_of(slot).word()},
                                       now, &operation.reference);
  if (status != Status::ok) {
    context_.operations.release(slot);
    return true;
  }
  awaited_.add(slot, now);
  handle_out = context_.operations.handle_of(slot);
  handle_out.at = now;
  ++context_.counters.messages_sent;
  ++context_.counters.messages_lent;
  return true;
}

std::uint32_t Loans::deliver_given_back(const link::Delivery& delivery) {
  const std::uint64_t name = delivery.envelope.cookie;
  Operation* const operation = context_.operations.find(name);
  if (operation == nullptr || operation->kind != OperationKind::loan || operation->peer != delivery.peer) {
    ++context_.counters.dropped_late_answer;
    return kNone;
  }
  operation->is_answer_pending = false;
  operation->length_done = operation->length;
  if (delivery.envelope.status != 0 && operation->status == Status::ok) {
    const bool is_out_of_reach = delivery.envelope.status == std::to_underlying(Status::not_available);
    operation->status = is_out_of_reach ? Status::not_available : Status::system;
  }
  return slot_of(name);
}

void Loans::send_instead(std::uint32_t slot, base::Instant now) {
  Operation& operation = context_.operations[slot];
  operation.kind = OperationKind::send;
  operation.status = Status::ok;
  operation.is_link_pending = true;
  const Status status = context_.transports->submit(operation.peer,
                                                    {.envelope = {.operation = wire::Operation::message,
                                                                  .source_port = context_.ports[operation.port].number,
                                                                  .target_port = operation.other.port},
                                                     .pieces = operation.memory,
                                                     .size = operation.length,
                                                     .cookie = context_.operations.cookie_of(slot).word()},
                                                    now, &operation.reference);
  if (status != Status::ok) context_.operations.complete(slot, status, 0, now);
}

// Reader -------------------------------------------------------------------------------------------------------------

void Loans::deliver(const link::Delivery& delivery, base::Instant now) {
  const wire::Envelope& envelope = delivery.envelope;
  if (!shm::Transport::has(delivery.peer)) {
    ++context_.counters.dropped_unknown_operation;
    return;
  }
  const auto arena = context_.shm_transport()->arena_of(delivery.peer);
  if (arena.has_ended) {
    ++context_.counters.dropped_given_up;
    return;
  }
  if (arena.memory == nullptr) return tell_given_back(delivery.peer, envelope.cookie, Status::not_available, now);
  if (envelope.offset < sizeof(onesided::SharedTables) || envelope.offset > arena.bytes ||
      envelope.a > arena.bytes - envelope.offset || envelope.a == 0 || envelope.a > onesided::kCarriedOutMax) {
    ++context_.counters.refused_loans;
    return tell_given_back(delivery.peer, envelope.cookie, Status::invalid, now);
  }
  hand_over(delivery,
            {.bytes = {arena.memory->head() + envelope.offset, envelope.a},
             .memory = arena.memory,
             .peer = delivery.peer,
             .cookie = envelope.cookie},
            now);
}

void Loans::hand_over(const link::Delivery& delivery, const Taken& lent, base::Instant now) {
  const auto match = receives_.match(delivery.envelope.target_port, lent.bytes.size(), false);
  if (match) {
    ++context_.counters.messages_received;
    const base::SocketAddress& engine = context_.transports->address(delivery.peer);
    if (hand_over_in_place(match, lent, {engine, delivery.envelope.source_port}, now)) return;
    receives_.put(match, engine, delivery.envelope.source_port, lent.bytes, now);
  }
  tell_given_back(lent.peer, lent.cookie, Status::ok, now);
}

/// Returns false if the message must be copied.
bool Loans::hand_over_in_place(const Receives::Match& match, const Taken& lent, const RemotePort& source,
                               base::Instant now) {
  Operation& operation = *match.operation;
  const bool is_wanted = operation.takes_loans && operation.first_placement == kNone;
  const std::uint32_t loan = is_wanted ? taken_.acquire() : kNone;
  if (loan == kNone) return false;
  taken_[loan] = lent;
  taken_[loan].port = operation.port;
  ++context_.counters.loans_taken;
  const bool is_final = --operation.messages_left == 0;
  if (is_final) receives_.retire(match.slot);
  context_.ports.produce(operation.port, {.cookie = operation.cookie,
                                          .length = lent.bytes.size(),
                                          .offset = pack_name(loan, taken_.generation(loan)),
                                          .time_ns = now.time_since_epoch().count(),
                                          .source = source,
                                          .status = Status::ok,
                                          .is_final = is_final,
                                          .is_loan = true});
  if (is_final) context_.operations.release(match.slot);
  return true;
}

void Loans::give_back(PortHandle handle, std::uint64_t name, base::Instant now) {
  const Taken* const loan = taken_.find(slot_of(name), generation_of(name));
  if (loan != nullptr && loan->port == handle.slot) end(slot_of(name), now);
}

void Loans::give_back_all(PortHandle handle, base::Instant now) {
  taken_.for_each([&](std::uint32_t slot, const Taken& loan) {
    if (loan.port == handle.slot) end(slot, now);
  });
}

/// Gives a loan back. A peer that is gone is not told.
void Loans::end(std::uint32_t slot, base::Instant now) {
  Taken& loan = taken_[slot];
  loan.memory.reset();
  const link::PeerHandle peer = loan.peer;
  const std::uint64_t cookie = loan.cookie;
  taken_.release(slot);
  tell_given_back(peer, cookie, Status::ok, now);
}

void Loans::tell_given_back(link::PeerHandle peer, std::uint64_t cookie, Status status, base::Instant now) {
  answers_.answer(
      peer, {.operation = wire::Operation::given_back, .status = std::to_underlying(status), .cookie = cookie}, 0, now);
}

}  // namespace fairlead::engine
