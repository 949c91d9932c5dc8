#include "qp/one_sided.hpp"

#include <algorithm>
#include <array>
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
  const Result result = try_to_carry_out(pair, number);
  if (result == Result::sent_as_message) pair.sends[number].copied = 0;  // all of it is sent
  return result;
}

OneSided::Result OneSided::try_to_carry_out(QueuePair& pair, RequestNumber number) {
  SendEntry& entry = pair.sends[number];
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
  // A copy that was made for it goes at once.
  const std::uint64_t left = entry.length - entry.copied;
  const std::uint64_t step = list.copy() != nullptr ? left : std::min(left, shared_.turn.left());
  const bool is_last = step == left;
  {
    onesided::RemoteMemory memory(*peer, request.use());
    std::byte* const there = memory.find_mapped(request);
    if (there != nullptr && !is_first) {
      ++shared_.counters.direct_waits;
      return Result::later;
    }
    const bool is_done = there != nullptr || (is_first && may_call(pair, number, *peer, list) &&
                                              carry_out_by_calls(entry, request, memory, list, step));
    if (!is_done) return Result::sent_as_message;
    pair.route.is_proven = true;
    shared_.turn.spend(step);
    if (is_last) [[likely]] {
      pair.sends.carried_out();
      copy(pair, number, there, list);
    } else {
      copy_part(pair, number, there, list, step);
    }
  }
  if (!is_last) [[unlikely]]
    return put_off(pair, number);
  finish(pair, number);
  return Result::done;
}

/// Copies `step` bytes. `there` is null if system calls have copied them already.
void OneSided::copy_part(QueuePair& pair, RequestNumber number, std::byte* there, const GatherList& list,
                         std::uint64_t step) {
  SendEntry& entry = pair.sends[number];
  if (there != nullptr && entry.traits().has_result()) {
    std::atomic_thread_fence(std::memory_order_acquire);
    outstanding_.place_result(pair, number, entry.copied, {there + entry.copied, step});
  } else if (there != nullptr) {
    const iovec to{there + entry.copied, step};
    std::array<iovec, kSgesMax> part;
    base::scatter_copy({&to, 1}, 0, base::scatter_part(list.pieces(), entry.copied, step, part), step);
  }
  entry.copied += step;
}

/// The rest waits for the next turn, and so do later requests; or the request has failed.
OneSided::Result OneSided::put_off(QueuePair& pair, RequestNumber number) {
  pair.sends.begin_head();
  if (!pair.sends[number].has_failed()) return Result::partly;
  outstanding_.complete_in_order(pair);
  return Result::later;
}

/// Returns whether system calls may complete the request. If it has a result, `list` is then writable memory.
bool OneSided::may_call(QueuePair& pair, RequestNumber number, const shm::Connection& peer, GatherList& list) const {
  const SendEntry& entry = pair.sends[number];
  if (!pair.is(QpType::rc) || entry.traits().is_word()) return false;
  if (entry.traits().has_result() && shared_.gather(pair, number, verbs::access::local_write, list) != Cause::none)
    return false;
  return peer.may_call(entry.length, shared_.bounds.cma_max, shared_.bounds.cma_awake_max);
}

/// `step` bytes of it.
bool OneSided::carry_out_by_calls(const SendEntry& entry, const onesided::RegionRequest& request,
                                  onesided::RemoteMemory& memory, const GatherList& list, std::uint64_t step) {
  const bool is_read = entry.traits().has_result();
  const auto place = memory.find_by_calls(request);
  std::array<iovec, kSgesMax> pieces;
  const auto part = base::scatter_part(list.pieces(), entry.copied, step, pieces);
  const std::uint64_t at = place.value_or(0) + entry.copied;
  const bool is_done = place && (is_read ? memory.read(part, at, step) : memory.write(at, part, step));
  PairCounters& counters = shared_.counters;
  if (memory.has_failed()) ++counters.calls_failed;
  const bool is_whole = is_done && entry.copied + step == entry.length;
  if (is_whole) ++(is_read ? counters.reads_by_calls : counters.writes_by_calls);
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

/// Copies the rest. `there` is null if system calls have copied it already.
void OneSided::copy(QueuePair& pair, RequestNumber number, std::byte* there, const GatherList& list) {
  const SendEntry& entry = pair.sends[number];
  if (entry.traits().is_atomic()) return run_atomic(pair, number, there);
  if (entry.traits().has_result()) {
    ++shared_.counters.direct_reads;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (there != nullptr)
      outstanding_.place_result(pair, number, entry.copied, {there + entry.copied, entry.length - entry.copied});
    return;
  }
  ++shared_.counters.direct_writes;
  if (there == nullptr) return;
  if (entry.traits().is_word()) return store_word(there, list);
  if (entry.copied == 0) [[likely]]
    return base::scatter_store(there, list.pieces(), entry.length);
  std::array<iovec, kSgesMax> part;
  const std::uint64_t left = entry.length - entry.copied;
  base::scatter_store(there + entry.copied, base::scatter_part(list.pieces(), entry.copied, left, part), left);
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
