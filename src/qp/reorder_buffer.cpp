#include "qp/reorder_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/ensure.hpp"

namespace fairlead::qp {
namespace {

wire::RequestSequence sequence_of(const link::Delivery& delivery) {
  return wire::decode_request_key(delivery.envelope.key).sequence;
}

}  // namespace

std::uint32_t ReorderBuffer::open_request(const QueuePair& pair, const link::Delivery& delivery) {
  const std::uint32_t slot = places_.acquire(Arrival::Kind::request);
  if (slot == kNone) return kNone;
  Arrival& arrival = places_[slot];
  arrival.pair = pair.index;
  arrival.sequence = sequence_of(delivery);
  arrival.envelope = delivery.envelope;
  arrival.size = delivery.size;
  arrival.is_linked = delivery.reassembly != link::Delivery::kWhole && !delivery.is_last;
  if (arrival.is_linked) shared_.transports->set_target(delivery.peer, delivery.reassembly, places_.target_of(slot));
  return slot;
}

std::uint32_t ReorderBuffer::open_answer(const QueuePair& pair, const link::Delivery& delivery) {
  const std::uint32_t slot = places_.acquire(Arrival::Kind::answer);
  if (slot == kNone) return kNone;
  Arrival& arrival = places_[slot];
  arrival.pair = pair.index;
  arrival.sequence = sequence_of(delivery);
  arrival.incarnation = pair.incarnation;
  shared_.transports->set_target(delivery.peer, delivery.reassembly, places_.target_of(slot));
  return slot;
}

// All datagrams together may hold as much as one queue pair. A longer one is still one message of the link: its later
// chunks have no target and are discarded.
std::uint32_t ReorderBuffer::open_datagram(const link::Delivery& delivery) {
  const std::uint64_t most = shared_.bounds.early_max;
  const bool has_room =
      held_bytes_ + delivery.size <= most && datagram_bytes_ + delivery.size <= most / 4 && delivery.size != 0;
  const std::uint32_t slot = has_room ? places_.acquire(Arrival::Kind::datagram) : kNone;
  if (slot == kNone || !add_piece(places_[slot], 0, delivery.size)) {
    if (slot != kNone) places_.release(slot);
    ++shared_.counters.refused_no_room;
    return kNone;
  }
  Arrival& arrival = places_[slot];
  arrival.envelope = delivery.envelope;
  arrival.size = arrival.bytes_held = delivery.size;
  std::memset(arrival.held.front().bytes.get(), 0, delivery.size);  // overlapping chunks may leave gaps
  held_bytes_ += delivery.size;
  datagram_bytes_ += delivery.size;
  shared_.transports->set_target(delivery.peer, delivery.reassembly, places_.target_of(slot));
  return slot;
}

void ReorderBuffer::release_datagram(std::uint32_t slot) {
  datagram_bytes_ -= places_[slot].bytes_held;
  let_go(places_[slot]);
  places_.release(slot);
}

void ReorderBuffer::drop(std::uint32_t slot) {
  Arrival& arrival = places_[slot];
  let_go(arrival);
  arrival.held.clear();
  arrival.pair = kNone;
  if (!arrival.is_linked) places_.release(slot);
}

void ReorderBuffer::drop_all(QueuePair& pair) {
  while (!pair.early.is_empty()) {
    const std::uint32_t slot = pair.early.first;
    unlink(pair, slot);
    drop(slot);
  }
  if (pair.current.arrival != kNone) drop(std::exchange(pair.current.arrival, kNone));
  pair.early.has_dropped = false;
}

// The chain of a queue pair ------------------------------------------------------------------------------------------

void ReorderBuffer::link(QueuePair& pair, std::uint32_t slot, std::uint32_t before) {
  ArrivalChain& chain = pair.early;
  Arrival& arrival = places_[slot];
  arrival.previous = before;
  arrival.next = before == kNone ? chain.first : places_[before].next;
  (arrival.next == kNone ? chain.last : places_[arrival.next].previous) = slot;
  (before == kNone ? chain.first : places_[before].next) = slot;
  ++chain.count;
}

void ReorderBuffer::unlink(QueuePair& pair, std::uint32_t slot) {
  ArrivalChain& chain = pair.early;
  Arrival& arrival = places_[slot];
  (arrival.previous == kNone ? chain.first : places_[arrival.previous].next) = arrival.next;
  (arrival.next == kNone ? chain.last : places_[arrival.next].previous) = arrival.previous;
  arrival.next = arrival.previous = kNone;
  --chain.count;
  chain.bytes -= arrival.bytes_held;
}

bool ReorderBuffer::can_hold(const QueuePair& pair, std::size_t bytes) const {
  const std::uint64_t most = shared_.bounds.early_max;
  return held_bytes_ + bytes <= most && pair.early.bytes + bytes <= most / 4;
}

bool ReorderBuffer::hold(QueuePair& pair, const link::Delivery& delivery) {
  const wire::RequestSequence sequence = sequence_of(delivery);
  // Usually the request belongs behind all that wait.
  std::uint32_t before = pair.early.last;
  while (before != kNone && is_before(sequence, places_[before].sequence)) before = places_[before].previous;
  if (before != kNone && places_[before].sequence == sequence) {
    ++shared_.counters.duplicates;
    return false;
  }
  // A queue pair takes at most a quarter of the free slots, so that some remain for each.
  const std::uint32_t most = std::min(kMostOfPair, places_.left(Arrival::Kind::request) / 4);
  const bool has_room = pair.early.count < most && can_hold(pair, delivery.bytes.size());
  const std::uint32_t slot = has_room ? open_request(pair, delivery) : kNone;
  if (slot == kNone) {
    note_dropped(pair, sequence);
    return false;
  }
  link(pair, slot, before);
  ++shared_.counters.held;
  return keep(pair, slot, delivery);
}

bool ReorderBuffer::hold_more(QueuePair& pair, std::uint32_t slot, const link::Delivery& delivery) {
  if (can_hold(pair, delivery.bytes.size())) return keep(pair, slot, delivery);
  give_up(pair, slot);
  return false;
}

void ReorderBuffer::give_up(QueuePair& pair, std::uint32_t slot) {
  note_dropped(pair, places_[slot].sequence);
  unlink(pair, slot);
  drop(slot);
}

/// Returns false if there is no memory.
bool ReorderBuffer::add_piece(Arrival& arrival, std::uint64_t offset, std::size_t size) try {
  arrival.held.push_back({offset, size, std::make_unique_for_overwrite<std::byte[]>(size)});
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

/// Stores a chunk of a request in the queue pair's chain. Returns false if there is no memory, or if the sender has
/// taken the request back; the request is then dropped.
bool ReorderBuffer::keep(QueuePair& pair, std::uint32_t slot, const link::Delivery& delivery) {
  Arrival& arrival = places_[slot];
  const std::span<const std::byte> bytes = delivery.bytes;
  if (bytes.empty()) return true;
  if (!add_piece(arrival, delivery.offset, bytes.size())) {
    give_up(pair, slot);
    return false;
  }
  std::memcpy(arrival.held.back().bytes.get(), bytes.data(), bytes.size());
  if (!delivery.is_good()) [[unlikely]] {
    ++shared_.counters.dropped_taken_back;
    unlink(pair, slot);
    drop(slot);
    return false;
  }
  arrival.bytes_held += bytes.size();
  pair.early.bytes += bytes.size();
  held_bytes_ += bytes.size();
  shared_.counters.held_bytes_most = std::max(shared_.counters.held_bytes_most, held_bytes_);
  return true;
}

void ReorderBuffer::note_dropped(QueuePair& pair, wire::RequestSequence sequence) {
  ++shared_.counters.refused_no_room;
  ArrivalChain& chain = pair.early;
  if (!chain.has_dropped || is_before(sequence, chain.dropped_first)) chain.dropped_first = sequence;
  chain.has_dropped = true;
}

void ReorderBuffer::check(const QueuePair& pair) {
  std::uint64_t bytes = 0;
  std::uint32_t count = 0, previous = kNone;
  for (std::uint32_t at = pair.early.first; at != kNone; at = places_[at].next) {
    const Arrival& arrival = places_[at];
    ENSURE(arrival.pair == pair.index && arrival.previous == previous, "queue pair {}: a broken chain of arrivals",
           pair.number);
    bytes += arrival.bytes_held;
    previous = at;
    ++count;
  }
  ENSURE(count == pair.early.count && bytes <= pair.early.bytes,
         "queue pair {}: {} arrivals with {} bytes wait, {} with {} are known", pair.number, count, bytes,
         pair.early.count, pair.early.bytes);
  checked_bytes_ += pair.early.bytes;
}

void ReorderBuffer::check_sum() {
  const std::uint64_t held = std::exchange(checked_bytes_, 0);
  ENSURE(held <= held_bytes_ && datagram_bytes_ <= held_bytes_, "queue pairs hold {} bytes, {} of datagrams, {} in all",
         held, datagram_bytes_, held_bytes_);
}

}  // namespace fairlead::qp
