#include "qp/one_sided.hpp"

#include <atomic>

#include "base/scatter.hpp"
#include "qp/cma.hpp"
#include "shm/read_section.hpp"
#include "shm/shared_tables.hpp"

namespace fairlead::qp {

using verbs::Cause;
using verbs::QpType;
using verbs::SendOpcode;

std::optional<std::uint64_t> find_place(const Shared& shared, const QueuePair& pair, const SendEntry& entry,
                                        const shm::SharedPair& there, const shm::SharedRegion& region) {
  const std::uint32_t right = entry.traits().right;
  const base::SocketAddress& here = shared.address;
  if (there.number != pair.attributes.dest_qp_num || there.peer_number != pair.number || (there.rights & right) == 0 ||
      there.peer_port != here.port || there.peer_scope != here.scope || there.peer_ip != here.ip) {
    return std::nullopt;
  }
  if (region.key != entry.rkey || region.domain != there.domain || (region.access & right) == 0) return std::nullopt;
  const std::uint64_t offset = entry.remote_addr - region.iova;
  if (entry.remote_addr < region.iova || offset > region.length || entry.length > region.length - offset ||
      offset < region.begin || offset > region.end || entry.length > region.end - offset) {
    return std::nullopt;
  }
  return region.offset + (offset - region.begin);
}

/// Where the request's bytes lie in the peer's arena; null if not there, or it is not permitted. Holds until we leave.
std::byte* OneSided::reach(const QueuePair& pair, const SendEntry& entry, const shm::Connection& peer) const {
  const auto& tables = *reinterpret_cast<const shm::SharedTables*>(peer.arena->head());
  shm::SharedPair there;
  shm::SharedRegion region;
  if (entry.rkey >> 8 >= shm::SharedTables::kRegions || !tables.regions[entry.rkey >> 8].read(region) ||
      !tables.pairs[pair.attributes.dest_qp_num % shm::SharedTables::kPairs].read(there)) {
    return nullptr;
  }
  const auto found = find_place(shared_, pair, entry, there, region);
  if (!found) return nullptr;
  const std::uint64_t at = *found;
  if (at > peer.arena_bytes || entry.length > peer.arena_bytes - at || at < sizeof(shm::SharedTables)) return nullptr;
  if (entry.traits().is_word() && (entry.remote_addr % 8 != 0 || at % 8 != 0)) return nullptr;
  return peer.arena->head() + at;
}

bool OneSided::may_carry_out(QueuePair& pair, const SendEntry& entry, bool is_first) const {
  return entry.traits().is_one_sided() && shared_.shm_transport() != nullptr && !entry.is_sent && entry.length != 0 &&
         entry.length <= shm::kCarriedOutMax && (is_first || !pair.sends.awaits_program());
}

shm::Connection* OneSided::find_mapped_peer(const QueuePair& pair) const {
  link::PeerHandle peer;
  const bool is_met = shared_.transports->resolve(pair.route.address, shared_.now, peer) == Status::ok;
  return is_met && shm::Transport::has(peer) ? shared_.shm_transport()->mapped_peer(peer) : nullptr;
}

OneSided::Result OneSided::carry_out(QueuePair& pair, RequestNumber number) {
  const SendEntry& entry = pair.sends[number];
  const bool is_first = number == pair.sends.head();
  if (!may_carry_out(pair, entry, is_first)) return Result::sent_as_message;
  shm::Connection* const peer = find_mapped_peer(pair);
  if (peer == nullptr) return Result::sent_as_message;
  GatherList list;
  if (entry.traits().has_data() && shared_.gather(pair, number, 0, list) != Cause::none) return Result::sent_as_message;
  {
    const auto use = shm::Use::of_region(entry.rkey >> 8, pair.attributes.dest_qp_num);
    const shm::ReadSection section(*peer, use);
    std::byte* const there = reach(pair, entry, *peer);
    if (there != nullptr && !is_first) {
      ++shared_.counters.direct_waits;
      return Result::later;
    }
    if (there == nullptr && (!is_first || !carry_out_by_calls(pair, number, *peer, list)))
      return Result::sent_as_message;
    pair.route.is_proven = true;
    pair.sends.carried_out();
    copy(pair, number, there, list);
  }
  finish(pair, number);
  return Result::done;
}

bool OneSided::carry_out_by_calls(QueuePair& pair, RequestNumber number, shm::Connection& peer,
                                  GatherList& list) const {
  const SendEntry& entry = pair.sends[number];
  if (!pair.is(QpType::rc) || entry.traits().is_word()) return false;
  if (entry.traits().has_result() && shared_.gather(pair, number, verbs::access::local_write, list) != Cause::none)
    return false;
  return qp::carry_out_by_calls(shared_, pair, entry, peer, list.pieces());
}

namespace {

/// Whatever pieces it comes from.
void store_word(std::byte* there, const GatherList& list) {
  std::uint64_t word = 0;
  const iovec whole{&word, sizeof word};
  base::scatter_copy({&whole, 1}, 0, list.pieces(), sizeof word);
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(there)).store(word, std::memory_order_release);
}

}  // namespace

/// `there` is null if it has been copied already.
void OneSided::copy(QueuePair& pair, RequestNumber number, std::byte* there, const GatherList& list) {
  const SendEntry& entry = pair.sends[number];
  if (entry.traits().is_atomic()) return run_atomic(pair, number, there);
  if (entry.traits().has_result()) {
    ++shared_.counters.direct_reads;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (there != nullptr) outstanding_.place_result(pair, number, 0, {there, entry.length});
    return;
  }
  ++shared_.counters.direct_writes;
  if (there != nullptr && entry.traits().is_word()) return store_word(there, list);
  if (there != nullptr) base::scatter_store(there, list.pieces(), entry.length);
}

void OneSided::run_atomic(QueuePair& pair, RequestNumber number, std::byte* there) {
  ++shared_.counters.direct_atomics;
  const SendEntry& entry = pair.sends[number];
  std::atomic_ref target(*reinterpret_cast<std::uint64_t*>(there));
  std::uint64_t before = entry.compare_add;
  if (entry.opcode == SendOpcode::fetch_add) {
    before = target.fetch_add(entry.compare_add);
  } else {
    target.compare_exchange_strong(before, entry.swap);
  }
  outstanding_.place_result(pair, number, 0, std::as_bytes(std::span(&before, 1)));
}

void OneSided::finish(QueuePair& pair, RequestNumber number) {
  SendEntry& entry = pair.sends[number];
  if (pair.is(QpType::uc)) return outstanding_.complete_unanswered(pair, entry);
  if (entry.traits().has_result()) outstanding_.finish_result(pair, number);
  outstanding_.take_answer(pair, number, {});
}

}  // namespace fairlead::qp
