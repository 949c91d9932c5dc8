// Enter, resolve, claim, copy, tell, leave (docs/one-sided.md). What we are at stands in the page of the two from
// before we look until we have told: an owner that cancels waits for that, and then finds what we have told in our
// ring.
//
// Memory outside the owner's arena is reached by system calls (shm/cross_memory.hpp). All peers of the owner can
// write to its table, so for such memory nobody believes it: where it lies is read from the owner's own records.

#include "engine/remote_exposures.hpp"

#include <atomic>
#include <cstddef>

#include "base/ensure.hpp"
#include "base/scatter.hpp"
#include "shm/read_section.hpp"
#include "shm/shared_tables.hpp"

namespace fairlead::engine {
namespace {

constexpr std::uint32_t place_at_owner(std::uint64_t key) {
  return static_cast<std::uint32_t>(key % shm::SharedTables::kExposures);
}

/// How we call ourselves in the owner's table.
std::uint64_t own_name(const shm::Connection& there) {
  return std::uint64_t{there.doorbell_bit} + 1;
}

bool fits(bool is_put, std::uint64_t asked, std::uint64_t exposed) {
  return is_put ? asked <= exposed : exposed <= asked;
}

}  // namespace

bool RemoteExposures::carry_out(PortHandle handle, bool is_put, const Transfer& transfer, base::Instant now) {
  if (context_.shm_transport() == nullptr || transfer.length == 0 || transfer.length > shm::kCarriedOutMax)
    return false;
  link::PeerHandle peer;
  const bool is_met = context_.transports->resolve(transfer.target.engine, now, peer) == Status::ok;
  shm::Connection* const there =
      is_met && shm::Transport::has(peer) ? context_.shm_transport()->mapped_peer(peer) : nullptr;
  if (there == nullptr || there->epoch != transfer.target_epoch) return false;
  std::uint64_t length = 0;
  {
    const shm::ReadSection section(*there, shm::Use::of_exposure(transfer.key));
    if (!copy(peer, *there, is_put, transfer, length)) {
      ++context_.counters.not_carried_out;
      return false;
    }
    tell_owner(peer, context_.ports[handle.slot].number, transfer, length);
  }
  there->alert();
  ++(is_put ? context_.counters.puts_carried_out : context_.counters.gets_carried_out);
  context_.ports.produce(handle.slot, {.cookie = transfer.cookie,
                                       .length = length,
                                       .offset = 0,
                                       .time_ns = now.time_since_epoch().count(),
                                       .source = transfer.target,
                                       .status = Status::ok,
                                       .is_final = true});
  return true;
}

bool RemoteExposures::copy(link::PeerHandle peer, shm::Connection& there, bool is_put, const Transfer& transfer,
                           std::uint64_t& length) {
  auto& tables = *reinterpret_cast<shm::SharedTables*>(there.arena->head());
  shm::PublishedExposure& exposure = tables.exposures[place_at_owner(transfer.key)];
  __builtin_prefetch(&exposure, 1);  // to read and to claim it takes the line once
  shm::SharedExposure seen;
  const bool is_found = exposure.record.read(seen) && seen.key == transfer.key && seen.port == transfer.target.port &&
                        (seen.is_writable != 0) == is_put && fits(is_put, transfer.length, seen.length);
  // The record has to find room: what has been done cannot be asked for again.
  if (!is_found || !context_.shm_transport()->has_room(peer)) return false;
  length = is_put ? transfer.length : seen.length;
  if (seen.offset == 0) return copy_by_calls(there, exposure, is_put, transfer, length);
  const bool is_there = seen.offset >= sizeof(shm::SharedTables) && seen.offset <= there.arena_bytes &&
                        seen.length <= there.arena_bytes - seen.offset && seen.length <= shm::kCarriedOutMax;
  return is_there && copy_mapped(there, exposure, seen.offset, is_put, transfer, length);
}

bool RemoteExposures::copy_mapped(shm::Connection& there, shm::PublishedExposure& exposure, std::uint64_t offset,
                                  bool is_put, const Transfer& transfer, std::uint64_t length) {
  if (!exposure.claim(transfer.key, own_name(there))) return false;
  std::byte* const at = there.arena->head() + offset;
  if (is_put) {
    base::scatter_store(at, transfer.memory, length);
  } else {
    base::scatter_write(transfer.memory, 0, {at, length});
  }
  return true;
}

/// Outside the arena. False: it has to be asked for; what may have been written is then written again.
bool RemoteExposures::copy_by_calls(shm::Connection& there, shm::PublishedExposure& exposure, bool is_put,
                                    const Transfer& transfer, std::uint64_t& length) {
  const EngineOptions& options = context_.options;
  if (!there.may_call(length, options.get(Option::shm_cma_max), options.get(Option::shm_cma_awake_max))) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // we have entered; its owner withdraws, and makes one, too
  shm::OwnedExposure owned;
  const std::uint64_t place = offsetof(shm::OwnedRecords, exposures) + sizeof owned * place_at_owner(transfer.key);
  if (!there.process.look(place, std::as_writable_bytes(std::span(&owned, 1)))) {
    ++context_.counters.calls_failed;
    return false;
  }
  if (owned.key.load(std::memory_order_relaxed) != transfer.key || (owned.is_writable != 0) != is_put ||
      !fits(is_put, transfer.length, owned.length) || owned.length == 0 || owned.length > shm::kCarriedOutMax)
    return false;
  if (!exposure.claim(transfer.key, own_name(there))) return false;
  if (!is_put) length = owned.length;
  const bool is_done = is_put ? there.process.write(owned.address, transfer.memory, length)
                              : there.process.read(transfer.memory, owned.address, length);
  if (!is_done) {
    ++context_.counters.calls_failed;
    exposure.claim(own_name(there), transfer.key);  // swapped back
    return false;
  }
  ++(is_put ? context_.counters.puts_by_calls : context_.counters.gets_by_calls);
  return true;
}

/// Without a ring: that may take a system call, and we are inside.
void RemoteExposures::tell_owner(link::PeerHandle peer, std::uint32_t own_port, const Transfer& transfer,
                                 std::uint64_t length) {
  const bool is_told = context_.shm_transport()->write(peer, {.operation = wire::Operation::carried_out,
                                                              .source_port = own_port,
                                                              .target_port = transfer.target.port,
                                                              .key = transfer.key ^ transfer.target_epoch,
                                                              .a = length});
  ENSURE(is_told, "no room for a record, though there was");
}

}  // namespace fairlead::engine
