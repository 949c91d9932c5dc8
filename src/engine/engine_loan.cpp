// Messages that are handed over in place, between engines of one host that show each other their memory
// (shm/arena.hpp): a record says where the message lies in the sender's memory. Whoever takes loans reads it there
// and gives it back later; for others the engine copies it into the posted buffer, once. The sender's operation ends
// when the message is given back, or its reader is gone.
//
// The reader's face holds the mapping, so the bytes stay readable whatever becomes of the sender.

#include "engine/engine.hpp"
#include "shm/shared_tables.hpp"

namespace fairlead::engine {

// The sender ---------------------------------------------------------------------------------------------------------

/// False: it goes as a message, copied.
bool Engine::lend(PortHandle handle, const Send& send, OperationHandle& handle_out, Status& status) {
  shm::Arena* const arena = shm_transport() != nullptr ? shm_transport()->connections().arena() : nullptr;
  if (arena == nullptr || send.part.memory.size() != 1 || send.part.length == 0 ||
      send.part.length > shm::kCarriedOutMax)
    return false;
  const auto offset = arena->find({static_cast<const std::byte*>(send.part.memory[0].iov_base), send.part.length});
  if (!offset) return false;
  link::PeerHandle peer;
  if (transports_->resolve(send.to.engine, now_, peer) != Status::ok || !shm::Transport::has(peer) ||
      shm_transport()->mapped_peer(peer) == nullptr)
    return false;

  const std::uint32_t slot = make_operation(OperationKind::loan, handle, send.part.cookie);
  status = Status::no_memory;
  if (slot == kNone) return true;
  Operation& operation = operations_[slot];
  operation.memory = send.part.memory;
  operation.length = send.part.length;
  operation.other = send.to;
  operation.peer = peer;
  operation.is_answer_pending = operation.is_link_pending = true;
  status = transports_->submit(peer,
                               {.envelope = {.operation = wire::Operation::lent,
                                             .source_port = ports_[handle.slot].number,
                                             .target_port = send.to.port,
                                             .cookie = name_of(slot),
                                             .offset = *offset,
                                             .a = send.part.length},
                                .pieces = {},
                                .cookie = name_of(slot)},
                               now_);
  if (status != Status::ok) {
    release_operation(slot);
    return true;
  }
  waiting_[peer.slot].append(operations_, slot);
  handle_out = {slot, operations_.generation(slot), now_};
  ++counters_.messages_sent;
  ++counters_.messages_lent;
  return true;
}

void Engine::deliver_given_back(const link::Delivery& delivery) {
  const std::uint64_t name = delivery.envelope.cookie;
  Operation* const operation = find_operation(name);
  if (operation == nullptr || operation->kind != OperationKind::loan || operation->peer != delivery.peer) {
    ++counters_.dropped_late_answer;
    return;
  }
  const std::uint32_t slot = slot_of(name);
  operation->is_answer_pending = false;
  operation->length_done = operation->length;
  if (delivery.envelope.status != 0 && operation->status == Status::ok) {
    const bool is_out_of_reach = delivery.envelope.status == std::to_underlying(Status::not_available);
    operation->status = is_out_of_reach ? Status::not_available : Status::system;
  }
  settle(slot);
}

/// The peer cannot reach our memory.
void Engine::send_instead(std::uint32_t slot) {
  Operation& operation = operations_[slot];
  operation.kind = OperationKind::send;
  operation.status = Status::ok;
  operation.is_link_pending = true;
  const Status status = transports_->submit(operation.peer,
                                            {.envelope = {.operation = wire::Operation::message,
                                                          .source_port = ports_[operation.port].number,
                                                          .target_port = operation.other.port},
                                             .pieces = operation.memory,
                                             .size = operation.length,
                                             .cookie = name_of(slot)},
                                            now_);
  if (status != Status::ok) complete(slot, status, 0);
}

// The reader ---------------------------------------------------------------------------------------------------------

void Engine::deliver_lent(const link::Delivery& delivery, base::Instant now) {
  const wire::Envelope& envelope = delivery.envelope;
  if (!shm::Transport::has(delivery.peer)) {
    ++counters_.dropped_unknown_operation;
    return;
  }
  const auto end = [&](Status status) {
    answer(delivery.peer,
           {.operation = wire::Operation::given_back, .status = std::to_underlying(status), .cookie = envelope.cookie},
           0, now);
  };
  const auto arena = shm_transport()->arena_of(delivery.peer);
  if (arena.memory == nullptr) return end(Status::not_available);
  if (envelope.offset < sizeof(shm::SharedTables) || envelope.offset > arena.bytes ||
      envelope.a > arena.bytes - envelope.offset || envelope.a == 0 || envelope.a > shm::kCarriedOutMax) {
    ++counters_.refused_loans;
    return end(Status::invalid);
  }
  const std::span<const std::byte> bytes(arena.memory->head() + envelope.offset, envelope.a);
  const std::uint32_t port = ports_.find_number(envelope.target_port);
  if (port == Ports::kNone) {
    ++counters_.dropped_no_port;
    return end(Status::ok);
  }
  const std::uint32_t slot = match_receive(port, bytes.size());
  if (slot == kNone) {
    ++counters_.dropped_no_buffer;
    ports_.drop(port);
    return end(Status::ok);
  }
  ++counters_.messages_received;
  Operation& operation = operations_[slot];
  const RemotePort source{transports_->address(delivery.peer), envelope.source_port};
  const bool is_taken = operation.takes_loans && operation.first_placement == kNone;
  const std::uint32_t loan = is_taken ? loans_.acquire() : kNone;
  if (loan == kNone) {
    const std::uint64_t offset = take_room(slot, bytes.size());
    operation.permit(offset, bytes.size()).write(0, bytes);
    complete_message(slot, offset, bytes.size(), source);
    return end(Status::ok);
  }
  loans_[loan] = {
      .bytes = bytes, .memory = arena.memory, .port = port, .peer = delivery.peer, .cookie = envelope.cookie};
  ++counters_.loans_taken;
  const bool is_final = --operation.messages_left == 0;
  if (is_final) ports_[port].posted.remove(operations_, slot);
  ports_.produce(port, {.cookie = operation.cookie,
                        .length = bytes.size(),
                        .offset = pack_name(loan, loans_.generation(loan)),
                        .time_ns = now_.time_since_epoch().count(),
                        .source = source,
                        .status = Status::ok,
                        .is_final = is_final,
                        .is_loan = true});
  if (is_final) release_operation(slot);
}

void Engine::give_back(PortHandle handle, std::uint64_t name, base::Instant now) {
  const LentMessage* const loan = loans_.find(slot_of(name), generation_of(name));
  if (loan == nullptr || loan->port != handle.slot) return;
  now_ = now;
  end_loan(slot_of(name), now);
}

/// A peer that is gone needs not be told.
void Engine::end_loan(std::uint32_t slot, base::Instant now) {
  LentMessage& loan = loans_[slot];
  loan.memory.reset();
  const link::PeerHandle peer = loan.peer;
  const std::uint64_t cookie = loan.cookie;
  loans_.release(slot);
  answer(peer, {.operation = wire::Operation::given_back, .cookie = cookie}, 0, now);
}

}  // namespace fairlead::engine
