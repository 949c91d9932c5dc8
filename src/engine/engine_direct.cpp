// Puts and gets that whoever asks for them carries out by himself, between engines of one host that show each other
// their memory (path/shm_arena.hpp, shared_tables.hpp): one copy, and nobody has to run at the other end. A record
// tells the owner afterwards, who then ends the exposure.
//
// An exposure serves one transfer. Whoever wants it claims it in the owner's table: one succeeds. The owner withdraws
// it likewise, so nobody writes to what has been withdrawn, and there is nothing to wait for. Only what certainly
// succeeds goes this way; all else is asked of the owner, whose answer says what is wrong.

#include <atomic>

#include "base/ensure.hpp"
#include "engine/engine.hpp"
#include "engine/scatter.hpp"
#include "engine/shared_tables.hpp"

namespace fairlead::engine {
namespace {

constexpr std::uint32_t index_of(std::uint64_t key) {
  return static_cast<std::uint32_t>(key % SharedTables::kExposures);
}

ShownExposure& exposure_in(std::byte* arena, std::uint64_t key) {
  return reinterpret_cast<SharedTables*>(arena)->exposures[index_of(key)];
}

}  // namespace

// The initiator ------------------------------------------------------------------------------------------------------

/// False: nothing was done, it has to be asked for.
bool Engine::carry_out(PortHandle handle, bool is_put, const Transfer& transfer) {
  if (lane() == nullptr || transfer.length == 0 || transfer.length > kCarriedOutMax) return false;
  const auto peer = peer_at(transfer.target.engine);
  path::ShmPeer* const there = peer && Lane::has(*peer) ? lane()->neighbour(*peer) : nullptr;
  if (there == nullptr || there->epoch != transfer.target_epoch) return false;

  ShownExposure& shown = exposure_in(there->arena->head(), transfer.key);
  __builtin_prefetch(&shown, 1);  // to read and to claim it takes the line once
  SharedExposure exposure;
  const bool is_found = shown.record.read(exposure) && exposure.key == transfer.key &&
                        exposure.port == transfer.target.port && (exposure.is_writable != 0) == is_put;
  const bool fits = is_put ? transfer.length <= exposure.length : exposure.length <= transfer.length;
  const bool is_there = exposure.offset >= sizeof(SharedTables) && exposure.offset <= there->arena_bytes &&
                        exposure.length <= there->arena_bytes - exposure.offset && exposure.length <= kCarriedOutMax;
  // The record has to find room: what has been done cannot be asked for again.
  if (!is_found || !fits || !is_there || !lane()->has_room(*peer) ||
      !shown.claim(transfer.key, std::uint64_t{there->bell_bit} + 1)) {
    ++counters_.not_carried_out;
    return false;
  }

  std::byte* const at = there->arena->head() + exposure.offset;
  const std::uint64_t length = is_put ? transfer.length : exposure.length;
  if (is_put) {
    scatter_store(at, transfer.memory, length);
    ++counters_.puts_carried_out;
  } else {
    scatter_write(transfer.memory, 0, {at, length});
    ++counters_.gets_carried_out;
  }
  const std::uint32_t own_port = ports_[handle.slot].number;
  const Status told = link_->submit(*peer,
                                    {.envelope = {.operation = wire::Operation::carried_out,
                                                  .source_port = own_port,
                                                  .target_port = transfer.target.port,
                                                  .key = transfer.key ^ transfer.target_epoch,
                                                  .a = length},
                                     .pieces = {},
                                     .wants_outcome = false},
                                    now_);
  ENSURE(told == Status::ok, "no room for a record, though there was: {}", static_cast<int>(told));
  produce(handle.slot, {.cookie = transfer.cookie,
                        .length = length,
                        .offset = 0,
                        .time_ns = now_.time_since_epoch().count(),
                        .source = transfer.target,
                        .status = Status::ok,
                        .is_final = true});
  return true;
}

// The owner ----------------------------------------------------------------------------------------------------------

ShownExposure& Engine::shown_exposure(std::uint64_t key) {
  return exposure_in(lane()->hub().arena()->head(), key);
}

/// If its memory lies where peers reach it, and its place in the table is free.
void Engine::show_exposure(std::uint32_t slot) {
  path::ShmArena* const arena = lane() != nullptr ? lane()->hub().arena() : nullptr;
  Operation& operation = operations_[slot];
  if (arena == nullptr || operation.memory.size() != 1 || operation.length == 0) return;
  const iovec& piece = operation.memory[0];
  const auto offset = arena->find({static_cast<const std::byte*>(piece.iov_base), operation.length});
  if (!offset) return;
  if (shown_.empty()) shown_.resize(SharedTables::kExposures, kNone);
  std::uint32_t& place = shown_[index_of(operation.key)];
  if (place != kNone) {
    ++counters_.exposures_crowded;
    return;
  }
  place = slot;
  operation.is_shown = true;
  shown_exposure(operation.key)
      .show({.key = operation.key,
             .offset = *offset,
             .length = operation.length,
             .port = ports_[operation.port].number,
             .is_writable = operation.kind == OperationKind::expose_writable});
}

/// False if a peer has claimed it: then its result comes.
bool Engine::withdraw_exposure(std::uint32_t slot) {
  Operation& operation = operations_[slot];
  if (!operation.is_shown) return true;
  ShownExposure& shown = shown_exposure(operation.key);
  if (!shown.claim(operation.key, 0) && is_held(shown)) return false;
  hide_exposure(slot);
  return true;
}

/// Frees its place in the table.
void Engine::hide_exposure(std::uint32_t slot) {
  Operation& operation = operations_[slot];
  shown_exposure(operation.key).holder.store(0, std::memory_order_relaxed);
  shown_[index_of(operation.key)] = kNone;
  operation.is_shown = false;
}

/// By a peer that may still be at it. Anybody may have written there.
bool Engine::is_held(const ShownExposure& shown) {
  const std::uint64_t name = shown.holder.load(std::memory_order_relaxed);
  return name != 0 && name <= path::ShmBellPage::kBits && lane()->hub().may_live(static_cast<std::uint32_t>(name - 1));
}

/// A peer says that it has done it.
void Engine::deliver_carried_out(const link::Delivery& delivery) {
  const wire::Envelope& envelope = delivery.envelope;
  const std::uint64_t key = envelope.key ^ epoch_;
  const std::uint32_t slot = shown_.empty() ? kNone : shown_[index_of(key)];
  if (slot == kNone || !Lane::has(delivery.peer) || operations_[slot].key != key ||
      ports_[operations_[slot].port].number != envelope.target_port || envelope.a > operations_[slot].length ||
      shown_exposure(key).holder.load(std::memory_order_relaxed) != lane()->name_of(delivery.peer)) {
    ++counters_.refused_stale;
    return;
  }
  Operation& operation = operations_[slot];
  ++(operation.kind == OperationKind::expose_writable ? counters_.puts_received : counters_.gets_received);
  operation.other = {link_->address(delivery.peer), envelope.source_port};
  complete(slot, Status::ok, envelope.a);
}

/// What peers had claimed that are no more.
void Engine::end_abandoned(Status status) {
  for (std::size_t index = 0; index < shown_.size(); ++index) {
    const std::uint32_t slot = shown_[index];
    if (slot == kNone) continue;
    const ShownExposure& shown = shown_exposure(index);
    if (shown.holder.load(std::memory_order_relaxed) != operations_[slot].key && !is_held(shown))
      complete(slot, status, 0);
  }
}

}  // namespace fairlead::engine
