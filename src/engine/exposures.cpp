#include "engine/exposures.hpp"

#include <algorithm>

#include "base/ensure.hpp"
#include "base/scatter.hpp"

namespace fairlead::engine {

Exposures::Exposures(MessageContext& context, link::TokenSource& secrets)
    : context_(context),
      secrets_(secrets),
      publisher_(context.shm_transport() != nullptr ? &context.shm_transport()->connections() : nullptr,
                 std::max(context.options.get(Option::shm_cma_max), context.options.get(Option::shm_cma_awake_max))) {}

bool Exposures::is_valid(const Exposure& exposure) {
  return exposure.memory.size() <= link::kPiecesMax && exposure.length <= base::scatter_size(exposure.memory);
}

Status Exposures::add(PortHandle handle, const Exposure& exposure, OperationHandle& handle_out, std::uint64_t& key) {
  if (!is_valid(exposure)) return Status::invalid;
  const Status status = add_blank(handle, handle_out, key);
  if (status == Status::ok) fill(handle_out.slot, exposure);
  return status;
}

Status Exposures::add_blank(PortHandle handle, OperationHandle& blank, std::uint64_t& key) {
  if (context_.ports.find(handle) == nullptr) return Status::stale;
  const std::uint32_t slot = context_.operations.make(OperationKind::blank, handle, 0);
  if (slot == kNone) return Status::no_memory;
  context_.operations[slot].key = key = make_key(slot);
  blank = context_.operations.handle_of(slot);
  return Status::ok;
}

Status Exposures::fill_blank(PortHandle port, OperationHandle blank, const Exposure& exposure) {
  if (!is_valid(exposure)) return Status::invalid;
  if (!has_blank(port, blank)) return Status::stale;
  fill(blank.slot, exposure);
  return Status::ok;
}

bool Exposures::has_blank(PortHandle port, OperationHandle blank) {
  const Operation* const operation = context_.operations.find(port, blank);
  return operation != nullptr && operation->kind == OperationKind::blank;
}

void Exposures::fill(std::uint32_t slot, const Exposure& exposure) {
  Operation& operation = context_.operations[slot];
  operation.kind = exposure.is_writable ? OperationKind::expose_writable : OperationKind::expose_readable;
  operation.memory = exposure.memory;
  operation.length = exposure.length;
  operation.cookie = exposure.cookie;
  publish(slot);
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
  if (!is_known || (exposure->is_published && !publisher_.take(key))) {
    ++context_.counters.refused_stale;
    return Status::stale;
  }
  exposure->is_published = false;
  exposure->is_busy = true;
  exposure->key = 0;
  slot_out = slot;
  return Status::ok;
}

bool Exposures::is_right(const Operation& exposure, OperationKind kind, std::uint64_t length, Status& status) {
  if (exposure.kind == OperationKind::blank) {
    ++context_.counters.asked_early;
    status = Status::again;
    return false;
  }
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
  if (operation.kind == OperationKind::blank) return context_.operations.release(slot);
  if (operation.is_busy || operation.is_withdrawn) return;
  if (!operation.is_published) return complete(slot, Status::canceled, 0, now);
  operation.is_withdrawn = true;
  const auto claimer = publisher_.cancel(operation.key);
  if (!claimer) return complete(slot, Status::canceled, 0, now);
  Withdrawal withdrawal{context_.operations.name_of(slot), *claimer};
  if (!retry(withdrawal, now)) withdrawing_.push_back(withdrawal);
}

void Exposures::complete(std::uint32_t slot, Status status, std::uint64_t length, base::Instant now) {
  hide(context_.operations[slot]);
  context_.operations.complete(slot, status, length, now);
}

// Publication --------------------------------------------------------------------------------------------------------

/// Publishes the exposure if peers can access its memory and its place in the table is free.
void Exposures::publish(std::uint32_t slot) {
  Operation& operation = context_.operations[slot];
  if (operation.memory.size() != 1 || !publisher_.is_seen()) return;
  // Reserved here, because the engine's thread must not fail for lack of memory.
  withdrawing_.reserve(onesided::SharedTables::kExposures);
  const auto answer = publisher_.publish(
      slot, {.key = operation.key,
             .memory = {static_cast<const std::byte*>(operation.memory[0].iov_base), operation.length},
             .port = context_.ports[operation.port].number,
             .is_writable = operation.kind == OperationKind::expose_writable});
  if (answer == onesided::ExposurePublisher::Answer::crowded) ++context_.counters.exposures_crowded;
  operation.is_published = answer == onesided::ExposurePublisher::Answer::published;
}

void Exposures::hide(Operation& exposure) {
  if (exposure.is_published) publisher_.free(exposure.key);
  exposure.is_published = false;
}

// Use by peers -------------------------------------------------------------------------------------------------------

std::uint32_t Exposures::deliver_carried_out(const link::Delivery& delivery, base::Instant now) {
  const std::uint64_t sender =
      shm::Transport::has(delivery.peer) ? context_.shm_transport()->name_of(delivery.peer) : 0;
  const std::uint32_t slot = sender != 0 ? find_done(delivery, sender) : kNone;
  if (slot == kNone) {
    ++context_.counters.refused_stale;
    return kNone;
  }
  const wire::Envelope& envelope = delivery.envelope;
  Operation& operation = context_.operations[slot];
  const bool is_put = operation.kind == OperationKind::expose_writable;
  ++(is_put ? context_.counters.puts_received : context_.counters.gets_received);
  operation.other = {context_.transports->address(delivery.peer), envelope.source_port};
  return end_used(slot, static_cast<std::uint32_t>(sender - 1), Status::ok, envelope.a, now);
}

/// Returns the exposure that a peer claims to have carried out, if that is plausible; else kNone. It does not consult
/// the table: any peer with the key and the arena may have done it. Other peers' writes to the table cannot change
/// that.
std::uint32_t Exposures::find_done(const link::Delivery& delivery, std::uint64_t sender) {
  const wire::Envelope& envelope = delivery.envelope;
  const std::uint64_t key = envelope.key ^ context_.epoch;
  const std::uint32_t slot = publisher_.find(key);
  if (slot == kNone) return kNone;
  const Operation& operation = context_.operations[slot];
  const bool is_good = operation.key == key && context_.ports[operation.port].number == envelope.target_port &&
                       envelope.a <= operation.length && !operation.is_used_up &&
                       context_.shm_transport()->connections().peer(static_cast<std::uint32_t>(sender - 1)).sees_ours;
  if (!is_good) return kNone;
  // After a cancellation, only the peer that had claimed it is believed.
  const auto is_senders = [&](const Withdrawal& one) {
    return slot_of(one.name) == slot && one.claimer.name == sender;
  };
  return !operation.is_withdrawn || std::ranges::any_of(withdrawing_, is_senders) ? slot : kNone;
}

std::uint32_t Exposures::end_abandoned(const shm::Departure& gone, Status status, base::Instant now) {
  const std::uint32_t slot = publisher_.find(gone.at);
  if (slot == kNone) return kNone;
  const Operation& operation = context_.operations[slot];
  if (operation.is_used_up || operation.is_withdrawn || !publisher_.take_from(gone, operation.key)) return kNone;
  return end_used(slot, gone.slot, status, 0, now);
}

/// Ends an exposure after its use by the peer of slot `user`. Returns its slot if it cannot end yet, else kNone.
/// Another peer may be late or malicious, and still use the memory or be about to read our records.
std::uint32_t Exposures::end_used(std::uint32_t slot, std::uint32_t user, Status status, std::uint64_t length,
                                  base::Instant now) {
  Operation& operation = context_.operations[slot];
  if (publisher_.end(operation.key, user)) {
    operation.is_published = false;
    context_.operations.complete(slot, status, length, now);
    return kNone;
  }
  operation.is_used_up = operation.is_busy = true;
  operation.status = status;
  operation.length_done = length;
  withdrawing_.push_back({.name = context_.operations.name_of(slot), .claimer = {}});
  return slot;
}

void Exposures::retry_withdrawals(base::Instant now) {
  std::erase_if(withdrawing_, [&](Withdrawal& withdrawal) { return retry(withdrawal, now); });
}

void Exposures::check(std::uint32_t slot) {
  const Operation& exposure = context_.operations[slot];
  ENSURE(!exposure.is_published || publisher_.find(exposure.key) == slot,
         "exposure {}: published, and its place is another's", slot);
  const bool is_ending = exposure.is_withdrawn || exposure.is_used_up;
  ENSURE(!is_ending || exposure.is_published, "exposure {}: peers hold it up that cannot see it", slot);
  const auto is_its = [&](const Withdrawal& one) { return one.name == context_.operations.name_of(slot); };
  ENSURE(!is_ending || std::ranges::any_of(withdrawing_, is_its), "exposure {}: it is to end, and nobody sees to that",
         slot);
}

/// Returns true once the exposure has ended.
bool Exposures::retry(Withdrawal& withdrawal, base::Instant now) {
  const Operation* const operation = context_.operations.find(withdrawal.name);
  if (operation == nullptr) return true;
  if (operation->is_used_up) {
    if (publisher_.is_used(operation->key)) return false;
    complete(slot_of(withdrawal.name), operation->status, operation->length_done, now);
    return true;
  }
  const auto status = publisher_.end_of(operation->key, withdrawal.claimer);
  if (status) complete(slot_of(withdrawal.name), *status, 0, now);
  return status.has_value();
}

}  // namespace fairlead::engine
