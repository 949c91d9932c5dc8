// Puts and gets that whoever asks for them carries out by himself, between engines of one host that show each other
// their memory (shm/arena.hpp, shared_tables.hpp): one copy, and nobody has to run at the other end. A record
// tells the owner afterwards, who then ends the exposure.
//
// An exposure serves one transfer. Whoever wants it claims it in the owner's table: one succeeds. The owner withdraws
// it likewise, so nobody writes to what has been withdrawn, and there is nothing to wait for. Only what certainly
// succeeds goes this way; all else is asked of the owner, whose answer says what is wrong.
//
// Memory outside the arena is reached by system calls (shm/cross_memory.hpp). All peers of the owner can write to
// the table, so for such memory nobody believes it: where it lies is read from the owner's own records, and who is at
// it stands in the page of the two as well, from before those are read until the copy is done. While it stands there
// the owner ends nothing, whatever the table says.

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "base/ensure.hpp"
#include "base/scatter.hpp"
#include "engine/engine.hpp"
#include "shm/shared_tables.hpp"

namespace fairlead::engine {
namespace {

// Whoever ends an exposure outside the arena looks at each of them.
constexpr std::uint32_t kForeignPeersMax = 64;

constexpr std::uint32_t index_of(std::uint64_t key) {
  return static_cast<std::uint32_t>(key % shm::SharedTables::kExposures);
}

shm::PublishedExposure& exposure_in(std::byte* arena, std::uint64_t key) {
  return reinterpret_cast<shm::SharedTables*>(arena)->exposures[index_of(key)];
}

}  // namespace

// The initiator ------------------------------------------------------------------------------------------------------

/// False: nothing was done, it has to be asked for.
bool Engine::carry_out(PortHandle handle, bool is_put, const Transfer& transfer) {
  if (shm_transport() == nullptr || transfer.length == 0 || transfer.length > shm::kCarriedOutMax) return false;
  link::PeerHandle peer;
  const bool is_met = transports_->resolve(transfer.target.engine, now_, peer) == Status::ok;
  shm::Connection* const there = is_met && shm::Transport::has(peer) ? shm_transport()->mapped_peer(peer) : nullptr;
  if (there == nullptr || there->epoch != transfer.target_epoch) return false;

  shm::PublishedExposure& shown = exposure_in(there->arena->head(), transfer.key);
  __builtin_prefetch(&shown, 1);  // to read and to claim it takes the line once
  shm::SharedExposure exposure;
  const bool is_found = shown.record.read(exposure) && exposure.key == transfer.key &&
                        exposure.port == transfer.target.port && (exposure.is_writable != 0) == is_put;
  const bool fits = is_put ? transfer.length <= exposure.length : exposure.length <= transfer.length;
  const bool is_there = exposure.offset >= sizeof(shm::SharedTables) && exposure.offset <= there->arena_bytes &&
                        exposure.length <= there->arena_bytes - exposure.offset &&
                        exposure.length <= shm::kCarriedOutMax;
  const std::uint64_t name = std::uint64_t{there->doorbell_bit} + 1;
  std::uint64_t length = is_put ? transfer.length : exposure.length;
  // The record has to find room: what has been done cannot be asked for again.
  bool is_done = is_found && fits && shm_transport()->has_room(peer);
  if (is_done && exposure.offset == 0) {
    is_done = carry_out_by_calls(*there, name, is_put, transfer, length);
  } else if (is_done && (is_done = is_there && shown.claim(transfer.key, name))) {
    std::byte* const at = there->arena->head() + exposure.offset;
    if (is_put) {
      base::scatter_store(at, transfer.memory, length);
    } else {
      base::scatter_write(transfer.memory, 0, {at, length});
    }
  }
  if (!is_done) {
    ++counters_.not_carried_out;
    return false;
  }
  ++(is_put ? counters_.puts_carried_out : counters_.gets_carried_out);
  const std::uint32_t own_port = ports_[handle.slot].number;
  const Status told = transports_->submit(peer,
                                          {.envelope = {.operation = wire::Operation::carried_out,
                                                        .source_port = own_port,
                                                        .target_port = transfer.target.port,
                                                        .key = transfer.key ^ transfer.target_epoch,
                                                        .a = length},
                                           .pieces = {},
                                           .wants_outcome = false},
                                          now_);
  ENSURE(told == Status::ok, "no room for a record, though there was: {}", static_cast<int>(told));
  ports_.produce(handle.slot, {.cookie = transfer.cookie,
                               .length = length,
                               .offset = 0,
                               .time_ns = now_.time_since_epoch().count(),
                               .source = transfer.target,
                               .status = Status::ok,
                               .is_final = true});
  return true;
}

namespace {

/// Says for its life, to the owner alone, what we are at in his process.
class Hold {
 public:
  Hold(shm::Connection& peer, std::uint64_t key) : peer_(peer) { peer_.hold(key); }
  ~Hold() { peer_.let_go(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  shm::Connection& peer_;
};

}  // namespace

/// Outside the arena. False: it has to be asked for; what may have been written is then written again.
bool Engine::carry_out_by_calls(shm::Connection& there, std::uint64_t name, bool is_put, const Transfer& transfer,
                                std::uint64_t& length) {
  // Whoever looks at his ring by himself is quicker there; for all others somebody would have to be woken.
  const bool is_awake = there.other->is_watching.load(std::memory_order_relaxed) != 0;
  if (!there.process.is_reached() ||
      length > options_.get(is_awake ? Option::shm_foreign_awake_max : Option::shm_foreign_max)) {
    return false;
  }
  const Hold hold(there, transfer.key);
  shm::OwnedExposure owned;
  const std::uint64_t place = offsetof(shm::OwnedRecords, exposures) + sizeof owned * index_of(transfer.key);
  if (!there.process.look(place, std::as_writable_bytes(std::span(&owned, 1)))) {
    ++counters_.calls_failed;
    return false;
  }
  const bool fits = is_put ? transfer.length <= owned.length : owned.length <= transfer.length;
  if (owned.key.load(std::memory_order_relaxed) != transfer.key || (owned.is_writable != 0) != is_put || !fits ||
      owned.length == 0 || owned.length > shm::kCarriedOutMax) {
    return false;
  }
  shm::PublishedExposure& shown = exposure_in(there.arena->head(), transfer.key);
  if (!shown.claim(transfer.key, name)) return false;
  if (!is_put) length = owned.length;
  const bool is_done = is_put ? there.process.write(owned.address, transfer.memory, length)
                              : there.process.read(transfer.memory, owned.address, length);
  if (!is_done) {
    ++counters_.calls_failed;
    shown.claim(name, transfer.key);  // swapped back
    return false;
  }
  ++(is_put ? counters_.puts_by_calls : counters_.gets_by_calls);
  return true;
}

// The owner ----------------------------------------------------------------------------------------------------------

shm::PublishedExposure& Engine::shown_exposure(std::uint64_t key) {
  return exposure_in(shm_transport()->connections().arena()->head(), key);
}

shm::OwnedExposure& Engine::owned_exposure(std::uint64_t key) {
  return reinterpret_cast<shm::OwnedRecords*>(shm_transport()->connections().records())->exposures[index_of(key)];
}

/// If its memory lies where peers reach it, and its place in the table is free.
void Engine::show_exposure(std::uint32_t slot) {
  shm::Arena* const arena = shm_transport() != nullptr ? shm_transport()->connections().arena() : nullptr;
  Operation& operation = operations_[slot];
  if (arena == nullptr || operation.memory.size() != 1 || operation.length == 0) return;
  const iovec& piece = operation.memory[0];
  const auto found = arena->find({static_cast<const std::byte*>(piece.iov_base), operation.length});
  auto* const records = reinterpret_cast<shm::OwnedRecords*>(shm_transport()->connections().records());
  const std::uint64_t foreign_max =
      std::max(options_.get(Option::shm_foreign_max), options_.get(Option::shm_foreign_awake_max));
  const bool is_foreign = !found && records != nullptr && operation.length <= foreign_max &&
                          shm_transport()->connections().peer_count() <= kForeignPeersMax;
  if (!found && !is_foreign) return;
  if (shown_.empty()) shown_.resize(shm::SharedTables::kExposures, kNone);
  std::uint32_t& place = shown_[index_of(operation.key)];
  if (place != kNone) {
    ++counters_.exposures_crowded;
    return;
  }
  place = slot;
  operation.is_shown = true;
  operation.is_foreign = is_foreign;
  if (is_foreign) {
    records->exposures[index_of(operation.key)].show({.key = operation.key,
                                                      .address = reinterpret_cast<std::uintptr_t>(piece.iov_base),
                                                      .length = operation.length,
                                                      .is_writable = operation.kind == OperationKind::expose_writable});
  }
  shown_exposure(operation.key)
      .show({.key = operation.key,
             .offset = found.value_or(0),
             .length = operation.length,
             .port = ports_[operation.port].number,
             .is_writable = operation.kind == OperationKind::expose_writable},
            shows_);
}

/// False if a peer has claimed it: then its result comes.
bool Engine::withdraw_exposure(std::uint32_t slot) {
  Operation& operation = operations_[slot];
  if (!operation.is_shown) return true;
  shm::PublishedExposure& shown = shown_exposure(operation.key);
  if (operation.is_foreign) {
    owned_exposure(operation.key).key.store(0, std::memory_order_relaxed);
    if (shm_transport()->connections().is_held(operation.key)) return false;
  }
  if (!shown.claim(operation.key, 0) && is_held(shown)) return false;
  hide_exposure(slot);
  return true;
}

/// What had been cancelled, or done, while somebody held it, once he has let go.
void Engine::retry_withdrawals() {
  std::erase_if(withdrawing_, [&](std::uint64_t name) {
    const Operation* const operation = find_operation(name);
    if (operation != nullptr && operation->is_carried_out) {
      if (shm_transport()->connections().is_held(operation->key)) return false;
      complete(slot_of(name), Status::ok, operation->length_done);
      return true;
    }
    if (operation == nullptr || operation->is_busy) return true;
    if (!withdraw_exposure(slot_of(name))) return false;
    complete(slot_of(name), Status::canceled, 0);
    return true;
  });
}

/// Frees its place in the table.
void Engine::hide_exposure(std::uint32_t slot) {
  Operation& operation = operations_[slot];
  if (operation.is_foreign) owned_exposure(operation.key).key.store(0, std::memory_order_relaxed);
  shown_exposure(operation.key).holder.store(0, std::memory_order_relaxed);
  shown_[index_of(operation.key)] = kNone;
  operation.is_shown = operation.is_foreign = false;
}

/// By a peer that may still be at it. Anybody may have written there.
bool Engine::is_held(const shm::PublishedExposure& shown) {
  const std::uint64_t name = shown.holder.load(std::memory_order_relaxed);
  return name != 0 && name <= shm::DoorbellPage::kBits &&
         shm_transport()->connections().may_live(static_cast<std::uint32_t>(name - 1));
}

/// A peer says that it has done it.
void Engine::deliver_carried_out(const link::Delivery& delivery) {
  const wire::Envelope& envelope = delivery.envelope;
  const std::uint64_t key = envelope.key ^ epoch_;
  const std::uint32_t slot = shown_.empty() ? kNone : shown_[index_of(key)];
  if (slot == kNone || !shm::Transport::has(delivery.peer) || operations_[slot].key != key ||
      ports_[operations_[slot].port].number != envelope.target_port || envelope.a > operations_[slot].length ||
      shown_exposure(key).holder.load(std::memory_order_relaxed) != shm_transport()->name_of(delivery.peer) ||
      operations_[slot].is_carried_out) {
    ++counters_.refused_stale;
    return;
  }
  Operation& operation = operations_[slot];
  ++(operation.kind == OperationKind::expose_writable ? counters_.puts_received : counters_.gets_received);
  operation.other = {transports_->address(delivery.peer), envelope.source_port};
  if (operation.is_foreign && shm_transport()->connections().is_held(key)) {
    // Somebody came too late, or lies. He may be about to look at our records, or be at it.
    operation.is_carried_out = operation.is_busy = true;
    operation.length_done = envelope.a;
    owned_exposure(key).key.store(0, std::memory_order_relaxed);
    withdrawing_.push_back(name_of(slot));
    grant_patience(name_of(slot), now_);
    return;
  }
  complete(slot, Status::ok, envelope.a);
}

/// What peers had claimed that are no more.
void Engine::end_abandoned(Status status) {
  for (std::size_t index = 0; index < shown_.size(); ++index) {
    const std::uint32_t slot = shown_[index];
    if (slot == kNone) continue;
    const shm::PublishedExposure& shown = shown_exposure(index);
    const std::uint64_t key = operations_[slot].key;
    if (!operations_[slot].is_carried_out && shown.holder.load(std::memory_order_relaxed) != key && !is_held(shown) &&
        !(operations_[slot].is_foreign && shm_transport()->connections().is_held(key)))
      complete(slot, status, 0);
  }
}

}  // namespace fairlead::engine
