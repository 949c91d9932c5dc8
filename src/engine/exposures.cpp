#include "engine/exposures.hpp"

#include <algorithm>

#include "base/scatter.hpp"
#include "shm/shared_tables.hpp"

namespace fairlead::engine {
namespace {

// Whoever ends an exposure outside the arena looks at each of them.
constexpr std::uint32_t kCmaPeersMax = 64;

constexpr std::uint32_t place_of(std::uint64_t key) {
  return static_cast<std::uint32_t>(key % shm::SharedTables::kExposures);
}

}  // namespace

Status Exposures::add(PortHandle handle, const Exposure& exposure, OperationHandle& handle_out, std::uint64_t& key) {
  if (context_.ports.find(handle) == nullptr) return Status::stale;
  if (exposure.memory.size() > link::kPiecesMax || exposure.length > base::scatter_size(exposure.memory))
    return Status::invalid;
  const std::uint32_t slot = context_.operations.make(
      exposure.is_writable ? OperationKind::expose_writable : OperationKind::expose_readable, handle, exposure.cookie);
  if (slot == kNone) return Status::no_memory;
  Operation& operation = context_.operations[slot];
  operation.memory = exposure.memory;
  operation.length = exposure.length;
  operation.key = key = make_key(slot);
  handle_out = context_.operations.handle_of(slot);
  publish(slot);
  return Status::ok;
}

std::uint64_t Exposures::make_key(std::uint32_t slot) {
  constexpr std::uint64_t kSlotMask = (1ULL << kKeySlotBits) - 1;
  std::uint64_t key = 0;
  while ((key & ~kSlotMask) == 0) key = (secrets_.next() & ~kSlotMask) | slot;
  return key;
}

Status Exposures::take(std::uint64_t key, std::uint32_t port, OperationKind kind, std::uint64_t length,
                       std::uint32_t& slot_out) {
  const auto slot = static_cast<std::uint32_t>(key & ((1ULL << kKeySlotBits) - 1));
  const std::uint32_t port_slot = context_.ports.find_number(port);
  Operation* const exposure = slot < context_.operations.size() ? &context_.operations[slot] : nullptr;
  Status status = Status::stale;
  const bool is_known = exposure != nullptr && key != 0 && exposure->key == key && exposure->port == port_slot &&
                        !exposure->is_busy && !exposure->is_withdrawn;
  if (is_known && !is_right(*exposure, kind, length, status)) return status;
  if (!is_known || !withdraw(slot)) {
    ++context_.counters.refused_stale;
    return Status::stale;
  }
  exposure->is_busy = true;
  exposure->key = 0;
  slot_out = slot;
  return Status::ok;
}

bool Exposures::is_right(const Operation& exposure, OperationKind kind, std::uint64_t length, Status& status) {
  if (exposure.kind != kind) {
    ++context_.counters.refused_not_permitted;
    status = Status::not_permitted;
    return false;
  }
  const bool fits = kind == OperationKind::expose_writable ? length <= exposure.length : exposure.length <= length;
  if (!fits) {
    ++context_.counters.refused_too_big;
    status = Status::too_big;
  }
  return fits;
}

void Exposures::cancel(std::uint32_t slot, base::Instant now) {
  Operation& operation = context_.operations[slot];
  if (operation.is_busy || operation.is_withdrawn) return;
  if (!operation.is_published) return complete(slot, Status::canceled, 0, now);
  operation.is_withdrawn = true;
  if (operation.is_cma) own_record(operation.key).key.store(0, std::memory_order_relaxed);
  Withdrawal withdrawal{.name = context_.operations.name_of(slot)};
  const std::uint64_t taker = published(operation.key).holder.exchange(0, std::memory_order_acq_rel);
  // Nobody has claimed it, nor can any more; and nobody is at it but to find that.
  if (taker == operation.key && !operation.is_cma) return complete(slot, Status::canceled, 0, now);
  const shm::ConnectionTable& peers = context_.shm_transport()->connections().peers();
  if (taker != operation.key && taker != 0 && taker <= peers.size()) {
    withdrawal.taker = taker;
    withdrawal.generation = peers[static_cast<std::uint32_t>(taker - 1)].generation;
  }
  if (const auto status = end_of(withdrawal, operation)) return complete(slot, *status, 0, now);
  withdrawing_.push_back(withdrawal);
}

void Exposures::complete(std::uint32_t slot, Status status, std::uint64_t length, base::Instant now) {
  if (context_.operations[slot].is_published) hide(slot);
  context_.operations.complete(slot, status, length, now);
}

// What peers see -----------------------------------------------------------------------------------------------------

shm::PublishedExposure& Exposures::published(std::uint64_t key) {
  std::byte* const arena = context_.shm_transport()->connections().arena()->head();
  return reinterpret_cast<shm::SharedTables*>(arena)->exposures[place_of(key)];
}

shm::OwnedExposure& Exposures::own_record(std::uint64_t key) {
  return reinterpret_cast<shm::OwnedRecords*>(context_.shm_transport()->connections().records())
      ->exposures[place_of(key)];
}

/// If its memory lies where peers reach it, and its place in the table is free.
void Exposures::publish(std::uint32_t slot) {
  shm::Connections* const connections =
      context_.shm_transport() != nullptr ? &context_.shm_transport()->connections() : nullptr;
  Operation& operation = context_.operations[slot];
  if (connections == nullptr || connections->arena() == nullptr || operation.memory.size() != 1 ||
      operation.length == 0)
    return;
  const iovec& piece = operation.memory[0];
  const auto found = connections->arena()->find({static_cast<const std::byte*>(piece.iov_base), operation.length});
  const std::uint64_t cma_max =
      std::max(context_.options.get(Option::shm_cma_max), context_.options.get(Option::shm_cma_awake_max));
  const bool is_cma = !found && connections->records() != nullptr && operation.length <= cma_max &&
                      connections->peers().size() <= kCmaPeersMax;
  if (!found && !is_cma) return;
  if (published_.empty()) {
    withdrawing_.reserve(shm::SharedTables::kExposures);  // the engine's thread finds no memory missing
    published_.resize(shm::SharedTables::kExposures, kNone);
  }
  std::uint32_t& place = published_[place_of(operation.key)];
  if (place != kNone) {
    ++context_.counters.exposures_crowded;
    return;
  }
  place = slot;
  operation.is_published = true;
  operation.is_cma = is_cma;
  const bool is_writable = operation.kind == OperationKind::expose_writable;
  if (is_cma) {
    own_record(operation.key)
        .publish({.key = operation.key,
                  .address = reinterpret_cast<std::uintptr_t>(piece.iov_base),
                  .length = operation.length,
                  .is_writable = is_writable});
  }
  published(operation.key)
      .publish({.key = operation.key,
                .offset = found.value_or(0),
                .length = operation.length,
                .port = context_.ports[operation.port].number,
                .is_writable = is_writable},
               publications_);
}

/// False if a peer has claimed it: then its result comes.
bool Exposures::withdraw(std::uint32_t slot) {
  const Operation& operation = context_.operations[slot];
  if (!operation.is_published) return true;
  if (operation.is_cma) {
    own_record(operation.key).key.store(0, std::memory_order_relaxed);
    if (is_held_by_calls(operation)) return false;
  }
  const std::uint64_t taker = published(operation.key).swap(operation.key, 0);
  if (taker != operation.key && may_live(taker)) return false;
  hide(slot);
  return true;
}

/// Nobody finds it any more.
void Exposures::close(const Operation& exposure) {
  if (exposure.is_cma) own_record(exposure.key).key.store(0, std::memory_order_relaxed);
  published(exposure.key).holder.store(0, std::memory_order_relaxed);
}

/// Frees its place in the table.
void Exposures::hide(std::uint32_t slot) {
  Operation& operation = context_.operations[slot];
  close(operation);
  published_[place_of(operation.key)] = kNone;
  operation.is_published = operation.is_cma = false;
}

/// A peer that is called so in the table, where anybody may have written.
bool Exposures::may_live(std::uint64_t name) {
  return name != 0 && name <= shm::DoorbellPage::kBits &&
         context_.shm_transport()->connections().peers().may_live(static_cast<std::uint32_t>(name - 1));
}

/// By another peer than that of slot `except`.
bool Exposures::is_held_by_calls(const Operation& exposure, std::uint32_t except) {
  return exposure.is_cma && context_.shm_transport()->connections().read_sections().is_used(
                                shm::Withdrawn::exposure(exposure.key), except);
}

// What peers have done -----------------------------------------------------------------------------------------------

std::uint32_t Exposures::deliver_carried_out(const link::Delivery& delivery, base::Instant now) {
  const std::uint32_t slot = find_done(delivery);
  if (slot == kNone) {
    ++context_.counters.refused_stale;
    return kNone;
  }
  const wire::Envelope& envelope = delivery.envelope;
  Operation& operation = context_.operations[slot];
  const bool is_put = operation.kind == OperationKind::expose_writable;
  ++(is_put ? context_.counters.puts_received : context_.counters.gets_received);
  operation.other = {context_.transports->address(delivery.peer), envelope.source_port};
  const auto user = static_cast<std::uint32_t>(context_.shm_transport()->name_of(delivery.peer) - 1);
  return end_used(slot, user, Status::ok, envelope.a, now);
}

/// The one of which a peer says that it has carried it out, if that may be; else kNone. The table is not asked: whoever
/// has the key and the arena could have done it, and what others write there takes nothing away from whoever has.
std::uint32_t Exposures::find_done(const link::Delivery& delivery) {
  const wire::Envelope& envelope = delivery.envelope;
  const std::uint64_t key = envelope.key ^ context_.epoch;
  const std::uint32_t slot = published_.empty() ? kNone : published_[place_of(key)];
  if (slot == kNone || !shm::Transport::has(delivery.peer)) return kNone;
  const Operation& operation = context_.operations[slot];
  const std::uint64_t sender = context_.shm_transport()->name_of(delivery.peer);
  const bool is_good = operation.key == key && context_.ports[operation.port].number == envelope.target_port &&
                       envelope.a <= operation.length && !operation.is_used_up &&
                       context_.shm_transport()->connections().peer(static_cast<std::uint32_t>(sender - 1)).sees_ours;
  if (!is_good) return kNone;
  // Since it was cancelled it is known who had claimed it.
  const auto is_senders = [&](const Withdrawal& one) { return slot_of(one.name) == slot && one.taker == sender; };
  return !operation.is_withdrawn || std::ranges::any_of(withdrawing_, is_senders) ? slot : kNone;
}

std::uint32_t Exposures::end_abandoned(const shm::Departure& gone, Status status, base::Instant now) {
  const std::uint32_t slot = published_.empty() ? kNone : published_[place_of(gone.at)];
  if (slot == kNone) return kNone;
  const Operation& operation = context_.operations[slot];
  if (operation.is_used_up || operation.is_withdrawn || !shm::Withdrawn::exposure(operation.key).is_used(gone.at))
    return kNone;
  const std::uint64_t name = std::uint64_t{gone.slot} + 1;
  if (published(operation.key).swap(name, 0) != name) return kNone;  // it was only looking at it
  return end_used(slot, gone.slot, status, 0, now);
}

/// By the peer of slot `user`. Its slot if it cannot end yet: somebody else came too late, or lies, and may be about to
/// look at our records, or be at it.
std::uint32_t Exposures::end_used(std::uint32_t slot, std::uint32_t user, Status status, std::uint64_t length,
                                  base::Instant now) {
  Operation& operation = context_.operations[slot];
  close(operation);  // whoever enters from here on finds nothing
  if (!is_held_by_calls(operation, user)) {
    complete(slot, status, length, now);
    return kNone;
  }
  operation.is_used_up = operation.is_busy = true;
  operation.status = status;
  operation.length_done = length;
  withdrawing_.push_back({.name = context_.operations.name_of(slot)});
  return slot;
}

void Exposures::retry_withdrawals(base::Instant now) {
  std::erase_if(withdrawing_, [&](Withdrawal& withdrawal) { return retry(withdrawal, now); });
}

/// True once it has ended.
bool Exposures::retry(Withdrawal& withdrawal, base::Instant now) {
  const Operation* const operation = context_.operations.find(withdrawal.name);
  if (operation == nullptr) return true;
  if (operation->is_used_up) {
    if (is_held_by_calls(*operation)) return false;
    complete(slot_of(withdrawal.name), operation->status, operation->length_done, now);
    return true;
  }
  const auto status = end_of(withdrawal, *operation);
  if (status) complete(slot_of(withdrawal.name), *status, 0, now);
  return status.has_value();
}

/// Of one that was cancelled: how it ends, when nobody is at it any more. Its claimer has told before it left, if it
/// has done it; so its ring is read first, as far as it goes or a ring's length.
std::optional<Status> Exposures::end_of(Withdrawal& withdrawal, const Operation& exposure) {
  shm::Connections& connections = context_.shm_transport()->connections();
  if (connections.read_sections().is_used(shm::Withdrawn::exposure(exposure.key))) return std::nullopt;
  if (withdrawal.taker == 0) return Status::canceled;
  const auto slot = static_cast<std::uint32_t>(withdrawal.taker - 1);
  const shm::Connection& taker = connections.peer(slot);
  if (taker.generation != withdrawal.generation || taker.state == shm::Connection::State::closed)
    return Status::refused;  // it is gone, and had told nothing
  if (!taker.is_audible()) return std::nullopt;
  if (withdrawal.ring_read_at == 0) withdrawal.ring_read_at = taker.reader.read() + taker.reader.lines();
  if (!taker.reader.has_record() || taker.reader.read() >= withdrawal.ring_read_at) return Status::canceled;
  connections.watch().remind(slot);
  return std::nullopt;
}

}  // namespace fairlead::engine
