#include "qp/one_sided.hpp"

#include <atomic>

#include "base/scatter.hpp"

namespace fairlead::qp {

using verbs::Cause;
using verbs::QpType;
using verbs::SendOpcode;

bool OneSided::may_carry_out(QueuePair& pair, const SendEntry& entry, bool is_first) const {
  return entry.traits().is_one_sided() && shared_.shm_transport() != nullptr && !entry.is_sent && entry.length != 0 &&
         entry.length <= onesided::kCarriedOutMax && (is_first || !pair.sends.awaits_program());
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
  const onesided::RegionRequest request{.from = shared_.address,
                                        .own_pair = pair.number,
                                        .pair = pair.attributes.dest_qp_num,
                                        .key = entry.rkey,
                                        .right = entry.traits().right,
                                        .address = entry.remote_addr,
                                        .length = entry.length,
                                        .is_word = entry.traits().is_word()};
  {
    onesided::RemoteMemory memory(*peer, request.use());
    std::byte* const there = memory.find_mapped(request);
    if (there != nullptr && !is_first) {
      ++shared_.counters.direct_waits;
      return Result::later;
    }
    const bool is_done = there != nullptr || (is_first && may_call(pair, number, *peer, list) &&
                                              carry_out_by_calls(entry, request, memory, list));
    if (!is_done) return Result::sent_as_message;
    pair.route.is_proven = true;
    pair.sends.carried_out();
    copy(pair, number, there, list);
  }
  finish(pair, number);
  return Result::done;
}

/// Returns whether system calls may complete the request. If it has a result, `list` is then writable memory.
bool OneSided::may_call(QueuePair& pair, RequestNumber number, const shm::Connection& peer, GatherList& list) const {
  const SendEntry& entry = pair.sends[number];
  if (!pair.is(QpType::rc) || entry.traits().is_word()) return false;
  if (entry.traits().has_result() && shared_.gather(pair, number, verbs::access::local_write, list) != Cause::none)
    return false;
  return peer.may_call(entry.length, shared_.bounds.cma_max, shared_.bounds.cma_awake_max);
}

bool OneSided::carry_out_by_calls(const SendEntry& entry, const onesided::RegionRequest& request,
                                  onesided::RemoteMemory& memory, const GatherList& list) {
  const bool is_read = entry.traits().has_result();
  const auto at = memory.find_by_calls(request);
  const bool is_done =
      at && (is_read ? memory.read(list.pieces(), *at, entry.length) : memory.write(*at, list.pieces(), entry.length));
  PairCounters& counters = shared_.counters;
  if (memory.has_failed()) ++counters.calls_failed;
  if (is_done) ++(is_read ? counters.reads_by_calls : counters.writes_by_calls);
  return is_done;
}

namespace {

/// Stores 8 bytes, which may lie in several pieces, as one word.
void store_word(std::byte* there, const GatherList& list) {
  std::uint64_t word = 0;
  const iovec whole{&word, sizeof word};
  base::scatter_copy({&whole, 1}, 0, list.pieces(), sizeof word);
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(there)).store(word, std::memory_order_release);
}

}  // namespace

/// `there` is null if system calls have copied the data already.
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
