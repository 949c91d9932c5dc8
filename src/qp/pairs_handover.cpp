#include "qp/pairs_handover.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <fairlead/verbs/device.hpp>

#include "base/saved.hpp"

namespace fairlead::qp {
namespace {

using verbs::QpState;
using verbs::QpType;

constexpr verbs::DeviceLimits kLimits;

std::unexpected<Error> cannot_save(Status status, std::string_view why) {
  return std::unexpected(Error{status, 0, std::string(why)});
}

/// Returns whether the slots of both lists are those below `size`, each once.
bool are_all_below(std::uint32_t size, const std::vector<std::uint32_t>& free, const auto& used, const auto& slot_of) {
  std::vector<bool> seen(size);
  std::size_t count = 0;
  const auto is_new = [&](std::uint32_t slot) {
    if (slot >= size || seen[slot]) return false;
    seen[slot] = true;
    ++count;
    return true;
  };
  return std::ranges::all_of(free, is_new) &&
         std::ranges::all_of(used, [&](const auto& one) { return is_new(slot_of(one)); }) && count == size;
}

void add(std::uint32_t slot, std::vector<SlotRun>& runs) {
  if (!runs.empty() && slot == runs.back().first + runs.back().count) {
    ++runs.back().count;
  } else {
    runs.push_back({slot, 1});
  }
}

/// Returns the slots of the runs; of more than `size`, only some.
std::vector<std::uint32_t> slots_of(const std::vector<SlotRun>& runs, std::uint32_t size) {
  std::vector<std::uint32_t> slots;
  for (const SlotRun& run : runs)
    for (std::uint32_t i = 0; i < run.count && slots.size() <= size; ++i) slots.push_back(run.first + i);
  return slots;
}

/// Omits the last values that are the same in an unused table.
std::vector<std::uint32_t> without_end(std::vector<std::uint32_t> values, std::uint32_t usual) {
  while (!values.empty() && values.back() == usual) values.pop_back();
  return values;
}

}  // namespace

// Saving -------------------------------------------------------------------------------------------------------------

Result<PairsState> PairsHandover::save() {
  if (auto possible = check_saving(); !possible) return std::unexpected(std::move(possible.error()));
  PairTable& table = pairs_.pairs_;
  PairsState saved{.regions = save_regions(),
                   .queue_names = pairs_.receives_.queues_.names(),
                   .arrival_names = pairs_.arrivals_.places_.arrivals_.names(),
                   .generations = without_end(table.generations_, 1),
                   .incarnations = without_end(table.incarnations_, 0),
                   .free = {},
                   .queues = {},
                   .arrivals = {},
                   .pairs = {},
                   .answers = {}};
  for (std::size_t i = 0; i < table.free_.size(); ++i) add(table.free_[i], saved.free);
  pairs_.receives_.queues_.for_each(
      [&](std::uint32_t slot, const ReceiveQueue& queue) { saved.queues.push_back(save_queue(slot, queue)); });
  save_arrivals(saved);
  std::vector<const CompletionStream*> streams;
  pairs_.for_each([&](QueuePair& pair) { saved.pairs.push_back(save_pair(pair, streams)); });
  pairs_.answers_.deferred_.for_each([&](link::PeerHandle peer, const Answers::Deferred& answer) {
    saved.answers.push_back(
        {.peer = peer, .envelope = answer.envelope, .pair = answer.pair, .incarnation = answer.incarnation});
  });
  return saved;
}

Result<> PairsHandover::check_saving() {
  if (!pairs_.groups_.is_empty()) return cannot_save(Status::not_supported, "queue pairs are in multicast groups");
  bool is_closing = false, is_in_flight = false, is_shared = false, is_withdrawn = false;
  pairs_.for_each([&](const QueuePair& pair) {
    is_closing |= pair.is_closing;
    is_in_flight |= pair.flights != 0;
    is_shared |= pair.plan.end != PairEnd::both;
  });
  pairs_.receives_.queues_.for_each(
      [&](std::uint32_t, const ReceiveQueue& queue) { is_shared |= queue.xrc_number != 0; });
  bool is_own_memory = false;
  for (const RegionTable::Entry& entry : pairs_.shared_.regions.entries_) {
    is_withdrawn |= entry.withdrawals != 0 || entry.holds[0] != 0 || entry.holds[1] != 0;
    is_own_memory |= entry.is_used && !entry.is_window() && !entry.plan.is_foreign;
  }
  if (is_shared) return cannot_save(Status::not_supported, "it has queue pairs of XRC");
  if (is_own_memory) return cannot_save(Status::not_supported, "it has memory regions of its own process");
  if (is_closing) return cannot_save(Status::again, "a queue pair is being closed");
  if (is_in_flight) return cannot_save(Status::again, "messages of queue pairs are on their way");
  if (is_withdrawn) return cannot_save(Status::again, "a memory region is being withdrawn");
  return {};
}

RegionsState PairsHandover::save_regions() const {
  const RegionTable& table = pairs_.shared_.regions;
  RegionsState saved;
  saved.variants.reserve(table.entries_.size());
  for (const RegionTable::Entry& entry : table.entries_) saved.variants.push_back(entry.variant);
  for (std::uint32_t slot = table.first_free_; slot != RegionTable::kNone; slot = table.entries_[slot].next_free)
    add(slot, saved.free);
  for (std::uint32_t slot = 0; slot < table.entries_.size(); ++slot) {
    const RegionTable::Entry& entry = table.entries_[slot];
    if (!entry.is_window() && !entry.is_used) continue;
    RegionState one{.slot = slot,
                    .type = entry.type,
                    .domain = entry.plan.domain,
                    .access = entry.plan.access,
                    .iova = entry.plan.iova};
    if (entry.is_window() && entry.is_used) {
      one.is_bound = true;
      one.region = entry.region;
      one.pair = entry.pair;
      one.offset = static_cast<std::uint64_t>(entry.plan.base - table.entries_[entry.region].plan.base);
      one.length = entry.plan.length;
    }
    saved.used.push_back(one);
  }
  return saved;
}

void PairsHandover::save_arrivals(PairsState& saved) {
  pairs_.arrivals_.places_.arrivals_.for_each([&](std::uint32_t slot, const Arrival& arrival) {
    ArrivalState& one = saved.arrivals.emplace_back(ArrivalState{.slot = slot,
                                                                 .pair = arrival.pair,
                                                                 .incarnation = arrival.incarnation,
                                                                 .sequence = arrival.sequence,
                                                                 .kind = arrival.kind,
                                                                 .is_linked = arrival.is_linked,
                                                                 .envelope = arrival.envelope,
                                                                 .size = arrival.size,
                                                                 .held = {}});
    for (const Arrival::Piece& piece : arrival.held)
      one.held.push_back({.offset = piece.offset, .bytes = {piece.span().begin(), piece.span().end()}});
  });
}

ReceiveQueueState PairsHandover::save_queue(std::uint32_t slot, const ReceiveQueue& queue) const {
  ReceiveQueueState saved{.slot = slot,
                          .depth = queue.plan_.depth,
                          .sges = queue.plan_.sges,
                          .domain = queue.plan_.domain,
                          .limit = queue.plan_.limit,
                          .is_limit_armed = queue.is_limit_armed_,
                          .head = queue.head_,
                          .posted = {}};
  saved.posted.reserve(queue.count());
  for (ReceiveNumber number = queue.head_; number != queue.tail_; ++number) {
    const std::uint32_t at = number.value & queue.mask_;
    const auto first = queue.sges_.begin() + static_cast<std::ptrdiff_t>(std::size_t{at} * queue.plan_.sges);
    saved.posted.push_back({.id = queue.entries_[at].id, .sges = {first, first + queue.entries_[at].sge_count}});
  }
  return saved;
}

SendQueueState PairsHandover::save_sends(SendQueue& sends) {
  SendQueueState saved{.head = sends.head_,
                       .next = sends.next_,
                       .begun = sends.begun_,
                       .acked = sends.acked_,
                       .answered_end = sends.answered_end_,
                       .first_sequence = sends.first_sequence_,
                       .unretired = sends.unretired_,
                       .reads_out = sends.reads_out_,
                       .posted = {}};
  saved.posted.reserve(count_between(sends.head_, sends.tail_));
  for (RequestNumber number = sends.head_; number != sends.tail_; ++number) {
    SendState& one = saved.posted.emplace_back(SendState{.entry = sends[number], .sges = {}, .inlined = {}});
    const auto sges = sends.sges_of(number);
    one.sges.assign(sges.begin(), sges.end());
    if (one.entry.has(verbs::send_flags::inlined))
      one.inlined.assign(sends.inlined_of(number), sends.inlined_of(number) + one.entry.length);
  }
  return saved;
}

PairState PairsHandover::save_pair(QueuePair& pair, std::vector<const CompletionStream*>& streams) {
  const auto known = std::ranges::find(streams, pair.plan.send_stream);
  const auto stream = static_cast<std::uint32_t>(known - streams.begin());
  if (known == streams.end()) streams.push_back(pair.plan.send_stream);
  PairState saved{.index = pair.index,
                  .receives = pair.receives,
                  .stream = stream,
                  .type = pair.plan.type,
                  .capacity = pair.plan.capacity,
                  .signals_all = pair.plan.signals_all,
                  .has_shared_receives = pair.plan.has_shared_receives,
                  .domain = pair.plan.domain,
                  .incarnation = pair.incarnation,
                  .sends_retired = pairs_.completer_.account(pair).sends.count(),
                  .receives_retired = pairs_.completer_.account(pair).receives.count(),
                  .attributes = pair.attributes,
                  .route = pair.route,
                  .sends = save_sends(pair.sends),
                  .patience = pair.patience,
                  .wants_drained = pair.wants_drained,
                  .receives_begin = pair.receives_begin,
                  .turn = pair.turn,
                  .current = pair.current,
                  .receive_sges = {pair.current_sges().begin(), pair.current_sges().end()},
                  .atomics = pair.atomics,
                  .early = {},
                  .has_dropped = pair.early.has_dropped,
                  .dropped_first = pair.early.dropped_first,
                  .is_answer_owed = pair.is_answer_owed,
                  .has_heard = pair.has_heard,
                  .gap_due = pair.gap_due};
  for (std::uint32_t slot = pair.early.first; slot != kNone; slot = pairs_.arrivals_[slot].next)
    saved.early.push_back(slot);
  return saved;
}

// Restoring ----------------------------------------------------------------------------------------------------------

Result<> PairsHandover::restore(const PairsState& saved, base::Instant now, std::uint32_t peers_max) try {
  pairs_.shared_.now = now;
  if (auto restored = restore_regions(saved.regions); !restored) return restored;
  if (!pairs_.receives_.queues_.restore(saved.queue_names) || pairs_.receives_.queues_.used() != saved.queues.size() ||
      !pairs_.arrivals_.places_.arrivals_.restore(saved.arrival_names) ||
      pairs_.arrivals_.places_.arrivals_.used() != saved.arrivals.size())
    return base::cannot_restore("its receive queues do not fit in the table");
  for (const ReceiveQueueState& queue : saved.queues)
    if (auto restored = restore_queue(queue); !restored) return restored;
  for (const ArrivalState& arrival : saved.arrivals)
    if (auto restored = restore_arrival(arrival); !restored) return restored;
  if (auto restored = restore_table(saved); !restored) return restored;
  for (const PairState& pair : saved.pairs)
    if (auto restored = restore_pair(pair, now, peers_max); !restored) return restored;
  if (!are_arrivals_sound(saved)) return base::cannot_restore("a request that arrived belongs to no queue pair");
  return restore_answers(saved, now, peers_max);
} catch (const std::bad_alloc&) {
  return std::unexpected(Error{Status::no_memory, ENOMEM, "no memory for the queue pairs that were handed over"});
}

Result<> PairsHandover::restore_regions(const RegionsState& saved) {
  RegionTable& table = pairs_.shared_.regions;
  const auto size = static_cast<std::uint32_t>(saved.variants.size());
  const std::vector<std::uint32_t> free = slots_of(saved.free, size);
  if (!table.entries_.empty() || size > table.regions_max_ + RegionTable::kWindowsMost + 2 * RegionTable::kRotation ||
      !are_all_below(size, free, saved.used, [](const RegionState& one) { return one.slot; }))
    return base::cannot_restore("its memory regions do not fit in the table");
  table.entries_.resize(size);
  for (std::uint32_t slot = 0; slot < size; ++slot) table.entries_[slot].variant = saved.variants[slot];
  for (const std::uint32_t slot : free) table.give_back(slot);
  for (const RegionState& one : saved.used) {
    RegionTable::Entry& entry = table.entries_[one.slot];
    entry.type = one.type;
    if (entry.is_window() && one.type != verbs::WindowType::type_1 && one.type != verbs::WindowType::type_2)
      return base::cannot_restore("a memory window is of no type");
    // Until give_memory() its length is 0, so nobody accesses anything.
    entry.plan = {.iova = one.iova, .access = one.access, .domain = one.domain, .is_foreign = true};
    if (entry.is_window()) {
      ++table.windows_;
      continue;
    }
    ++table.used_;
    entry.is_used = true;
    entry.hold = one.slot;
  }
  return table.used_ <= table.regions_max_ && table.windows_ <= RegionTable::kWindowsMost
             ? Result<>()
             : base::cannot_restore("it has too many memory regions");
}

Result<> PairsHandover::restore_queue(const ReceiveQueueState& saved) {
  ReceiveQueue* const queue = saved.slot < pairs_.receives_.queues_.size()
                                  ? pairs_.receives_.find({saved.slot, pairs_.receives_.queues_.generation(saved.slot)})
                                  : nullptr;
  const bool is_possible = queue != nullptr && queue->entries_.empty() && saved.depth != 0 &&
                           saved.depth <= kLimits.max_srq_wr && saved.sges != 0 && saved.sges <= kLimits.max_srq_sge &&
                           saved.posted.size() <= std::bit_ceil(saved.depth);
  if (!is_possible) return base::cannot_restore("a receive queue contradicts itself");
  *queue = ReceiveQueue({.depth = saved.depth, .sges = saved.sges, .domain = saved.domain, .limit = saved.limit});
  queue->is_limit_armed_ = saved.is_limit_armed;
  queue->head_ = queue->tail_ = saved.head;
  for (const ReceiveState& receive : saved.posted) {
    if (receive.sges.size() > saved.sges)
      return base::cannot_restore("a receive has more pieces than its queue permits");
    queue->post({.id = receive.id, .sges = receive.sges});
  }
  return {};
}

Result<> PairsHandover::restore_arrival(const ArrivalState& saved) {
  ArrivalPlaces& places = pairs_.arrivals_.places_;
  if (saved.slot >= places.arrivals_.size() ||
      places.arrivals_.find(saved.slot, places.generation(saved.slot)) == nullptr ||
      saved.kind > Arrival::Kind::datagram ||
      ++places.used_[ArrivalPlaces::index_of(saved.kind)] > ArrivalPlaces::kMost[ArrivalPlaces::index_of(saved.kind)])
    return base::cannot_restore("a request on its way has no place");
  Arrival& arrival = places[saved.slot];
  arrival.pair = saved.pair;
  arrival.incarnation = saved.incarnation;
  arrival.sequence = saved.sequence;
  arrival.kind = saved.kind;
  arrival.is_linked = saved.is_linked;
  arrival.envelope = saved.envelope;
  arrival.size = saved.size;
  for (const ArrivalPieceState& piece : saved.held) {
    if (piece.offset > saved.size || piece.bytes.size() > saved.size - piece.offset || piece.bytes.empty() ||
        !ReorderBuffer::add_piece(arrival, piece.offset, piece.bytes.size()))
      return base::cannot_restore("a request on its way contradicts itself");
    std::ranges::copy(piece.bytes, arrival.held.back().bytes.get());
    arrival.bytes_held += piece.bytes.size();
  }
  pairs_.arrivals_.held_bytes_ += arrival.bytes_held;
  if (arrival.kind != Arrival::Kind::datagram) return {};
  pairs_.arrivals_.datagram_bytes_ += arrival.bytes_held;
  return arrival.held.size() == 1 && arrival.held[0].size == arrival.size && arrival.pair == kNone
             ? Result<>()
             : base::cannot_restore("a datagram on its way contradicts itself");
}

Result<> PairsHandover::restore_table(const PairsState& saved) {
  PairTable& table = pairs_.pairs_;
  // Two numbers are reserved: they count as used.
  std::vector<std::uint32_t> used;
  for (std::uint32_t index = 0; index < PairTable::kFirstIndex; ++index) used.push_back(index);
  for (const PairState& pair : saved.pairs) used.push_back(pair.index);
  const std::vector<std::uint32_t> free = slots_of(saved.free, PairTable::kMost);
  if (!table.is_empty() || pairs_.shared_.bounds.number_first == base::Slab<int>::kNone ||
      saved.generations.size() > PairTable::kMost || saved.incarnations.size() > PairTable::kMost ||
      !are_all_below(PairTable::kMost, free, used, [](std::uint32_t index) { return index; }))
    return base::cannot_restore("its queue pairs do not fit in the table");
  std::ranges::copy(saved.generations, table.generations_.begin());
  std::ranges::copy(saved.incarnations, table.incarnations_.begin());
  table.free_.clear();
  for (const std::uint32_t index : free) table.free_.push(index);
  return {};
}

bool PairsHandover::is_sound(const PairState& saved) const {
  const verbs::QpCapacity& capacity = saved.capacity;
  const bool is_capacity = capacity.max_send_wr >= 1 && capacity.max_send_wr <= kLimits.max_qp_wr &&
                           capacity.max_recv_wr <= kLimits.max_qp_wr && capacity.max_send_sge <= kLimits.max_sge &&
                           capacity.max_recv_sge <= kLimits.max_sge && capacity.max_inline <= kLimits.max_inline;
  const ReceiveQueues& receives = pairs_.receives_;
  return is_capacity && saved.type >= QpType::rc && saved.type <= QpType::ud &&
         saved.attributes.state <= QpState::err && saved.receives < receives.queues_.size() &&
         !receives.queues_[saved.receives].entries_.empty();
}

bool PairsHandover::is_sound(const CurrentRequest& current, const PairState& saved, const ReceiveQueue& queue) {
  const bool is_word = (current.envelope.flags & wire::request_flags::word) != 0;
  return current.left <= current.size && current.size <= kMessageMax &&
         (!is_word || current.size <= sizeof(current.word)) && current.receive_sges == saved.receive_sges.size() &&
         current.receive_sges <= queue.sges_max() &&
         (current.queue == saved.receives || (!current.is_active && !current.has_receive));
}

Result<> PairsHandover::restore_pair(const PairState& saved, base::Instant now, std::uint32_t peers_max) {
  if (!is_sound(saved) || (saved.route.has_peer && saved.route.peer.slot >= peers_max) ||
      saved.stream > pairs_.streams_.size())
    return base::cannot_restore("a queue pair contradicts itself");
  if (saved.stream == pairs_.streams_.size()) pairs_.open_completions({.capacity = 64});
  ReceiveQueue& queue = pairs_.receives_[saved.receives];
  CompletionStream* const stream = pairs_.streams_[saved.stream].get();
  const PairPlan plan{.type = saved.type,
                      .capacity = saved.capacity,
                      .signals_all = saved.signals_all,
                      .domain = saved.domain,
                      .send_stream = stream,
                      .receive_stream = stream,
                      .shared_receives = {saved.receives, pairs_.receives_.queues_.generation(saved.receives)},
                      .has_shared_receives = saved.has_shared_receives};
  PairTable& table = pairs_.pairs_;
  table.pairs_[saved.index] = std::make_unique<QueuePair>(plan, saved.index, table.generations_[saved.index]);
  QueuePair& pair = *table.pairs_[saved.index];
  pair.number = table.number_first_ + pair.index;
  pair.receives = saved.receives;
  pair.incarnation = saved.incarnation;
  ++queue.users;
  stream->users += 2;
  if (!saved.has_shared_receives && queue.users != 1)
    return base::cannot_restore("a queue pair has receives of another");
  PairAccount& account = pairs_.completer_.account(pair);
  account.sends.begin_incarnation(pair.incarnation);
  account.sends.add(pair.incarnation, saved.sends_retired);
  account.receives.begin_incarnation(pair.incarnation);
  account.receives.add(pair.incarnation, saved.receives_retired);
  pair.attributes = saved.attributes;
  pair.route = saved.route;
  pair.patience = saved.patience;
  pair.wants_drained = saved.wants_drained;
  pair.receives_begin = saved.receives_begin;
  pair.turn = saved.turn;
  pair.atomics = saved.atomics;
  pair.has_heard = saved.has_heard;
  pair.gap_due = saved.gap_due;
  pair.early.has_dropped = saved.has_dropped;
  pair.early.dropped_first = saved.dropped_first;
  pair.receive_sges.resize(queue.sges_max());
  if (!restore_sends(saved.sends, plan, pair.sends) || !is_sound(saved.current, saved, queue) ||
      !restore_chain(saved, pair))
    return base::cannot_restore("a request of a queue pair contradicts itself");
  pair.current = saved.current;
  std::ranges::copy(saved.receive_sges, pair.receive_sges.begin());
  if (saved.is_answer_owed) pairs_.answers_.owe(pair);
  // Nobody could answer during the replacement.
  if (pair.is(QpType::rc) && pair.sends.is_any_out()) pair.await(now);
  pairs_.shared_.timers.set(pair.timer, pair.due());
  pairs_.requester_.hold(pair);  // until the first pass
  pairs_.published_.publish(pair);
  return {};
}

bool PairsHandover::restore_sends(const SendQueueState& saved, const PairPlan& plan, SendQueue& sends) {
  const auto posted = static_cast<std::uint32_t>(saved.posted.size());
  if (saved.posted.size() > plan.capacity.max_send_wr || count_between(saved.head, saved.next) > posted ||
      count_between(saved.head, saved.begun) > posted || saved.reads_out > posted)
    return false;
  sends.head_ = sends.tail_ = saved.head;
  for (const SendState& one : saved.posted) {
    SendEntry& entry = sends[sends.tail_];
    entry = one.entry;
    const bool is_inlined = entry.has(verbs::send_flags::inlined);
    if (!is_opcode(entry.opcode) || one.sges.size() > plan.capacity.max_send_sge ||
        one.inlined.size() > plan.capacity.max_inline || one.inlined.size() != (is_inlined ? entry.length : 0) ||
        entry.copied > entry.length)
      return false;
    entry.flights = 0;
    entry.sge_count = static_cast<std::uint16_t>(one.sges.size());
    std::ranges::copy(one.sges, sends.sges_of_slot(sends.tail_));
    std::ranges::copy(one.inlined, sends.inlined_of(sends.tail_));
    ++sends.tail_;
  }
  sends.next_ = saved.next;
  sends.begun_ = saved.begun;
  sends.acked_ = saved.acked;
  sends.answered_end_ = saved.answered_end;
  sends.first_sequence_ = saved.first_sequence;
  sends.unretired_ = saved.unretired;
  sends.reads_out_ = saved.reads_out;
  std::uint32_t reads = 0;
  for (RequestNumber number = sends.head_; number != sends.next_; ++number)
    reads += sends[number].traits().has_result() && !sends[number].is_done;
  return reads <= saved.reads_out;
}

bool PairsHandover::restore_chain(const PairState& saved, QueuePair& pair) {
  ReorderBuffer& arrivals = pairs_.arrivals_;
  std::uint32_t before = kNone;
  for (const std::uint32_t slot : saved.early) {
    if (slot >= arrivals.places_.arrivals_.size()) return false;
    const Arrival& arrival = arrivals[slot];
    const bool is_linked_already = arrival.previous != kNone || arrival.next != kNone || pair.early.first == slot;
    if (arrivals.places_.find(slot, arrivals.places_.generation(slot)) == nullptr || is_linked_already ||
        arrival.pair != pair.index || arrival.kind != Arrival::Kind::request)
      return false;
    arrivals.link(pair, slot, before);
    pair.early.bytes += arrival.bytes_held;
    before = slot;
  }
  const std::uint32_t current = saved.current.arrival;
  return current == kNone ||
         (current < arrivals.places_.arrivals_.size() && arrivals[current].pair == pair.index &&
          arrivals[current].kind == Arrival::Kind::request && saved.current.is_active && arrivals[current].is_linked &&
          arrivals.places_.find(current, arrivals.places_.generation(current)) != nullptr &&
          std::ranges::find(saved.early, current) == saved.early.end());
}

/// Returns whether each request that arrived waits in the chain of its queue pair, or is executed there.
bool PairsHandover::are_arrivals_sound(const PairsState& saved) {
  std::uint32_t chained = 0, wanted = 0;
  pairs_.for_each(
      [&](const QueuePair& pair) { chained += pair.early.count + (pair.current.arrival != kNone ? 1 : 0); });
  for (const ArrivalState& arrival : saved.arrivals) {
    wanted += arrival.kind == Arrival::Kind::request && arrival.pair != kNone;
    if (arrival.kind == Arrival::Kind::answer && arrival.pair >= PairTable::kMost) return false;
  }
  return chained == wanted;
}

Result<> PairsHandover::restore_answers(const PairsState& saved, base::Instant now, std::uint32_t peers_max) {
  for (const PairAnswerState& answer : saved.answers) {
    if (answer.peer.slot >= peers_max || (answer.pair != kNone && answer.pair >= PairTable::kMost))
      return base::cannot_restore("an answer of a queue pair is for a peer that there is not");
    const Answers::Deferred waiting{
        .envelope = answer.envelope, .pair = answer.pair, .incarnation = answer.incarnation};
    if (!pairs_.answers_.deferred_.add(answer.peer, waiting, now).is_taken)
      return base::cannot_restore("it has more answers than may wait");
  }
  return {};
}

// What the owner supplies --------------------------------------------------------------------------------------------

CompletionStream* PairsHandover::give_notices(PairHandle handle, NoticeStream* notices, std::uint64_t cookie) {
  QueuePair* const pair = pairs_.pairs_.find(handle);
  if (pair == nullptr || pair->plan.events != nullptr) return nullptr;
  pair->plan.events = notices;
  pair->plan.cookie = cookie;
  return pair->plan.send_stream;
}

bool PairsHandover::give_notices(ReceiveQueueHandle handle, NoticeStream* notices, std::uint64_t cookie) {
  ReceiveQueue* const queue = pairs_.receives_.find(handle);
  if (queue == nullptr || queue->plan_.events != nullptr) return false;
  queue->plan_.events = notices;
  queue->plan_.cookie = cookie;
  return true;
}

bool PairsHandover::give_memory(std::uint32_t key, std::byte* base, std::uint64_t length) {
  RegionTable& table = pairs_.shared_.regions;
  if (table.find(key) == nullptr) return false;
  RegionTable::Entry& entry = table.entries_[key >> 8];
  if (entry.is_window() || entry.plan.base != nullptr) return false;
  entry.plan.base = base;
  entry.plan.length = length;
  pairs_.publish_region(key);
  return true;
}

Result<> PairsHandover::finish(const PairsState& saved) {
  RegionTable& table = pairs_.shared_.regions;
  for (const RegionState& one : saved.regions.used) {
    RegionTable::Entry& entry = table.entries_[one.slot];
    if (!entry.is_window() && entry.plan.base == nullptr) return base::cannot_restore("a memory region has no memory");
    if (!one.is_bound) continue;
    if (!entry.is_window() || one.region >= table.entries_.size())
      return base::cannot_restore("a window has no region");
    RegionTable::Entry& region = table.entries_[one.region];
    if (!region.is_used || region.is_window() || one.offset > region.plan.length ||
        one.length > region.plan.length - one.offset)
      return base::cannot_restore("a memory window is outside its region");
    ++region.windows;
    entry.region = one.region;
    entry.hold = region.hold;
    entry.pair = one.pair;
    entry.is_used = true;
    entry.plan.base = region.plan.base + one.offset;
    entry.plan.length = one.length;
  }
  bool are_told = true;
  std::vector<bool> is_own(pairs_.receives_.queues_.size());
  pairs_.for_each([&](const QueuePair& pair) {
    are_told &= pair.plan.events != nullptr;
    if (!pair.plan.has_shared_receives) is_own[pair.receives] = true;
  });
  pairs_.receives_.queues_.for_each([&](std::uint32_t slot, const ReceiveQueue& queue) {
    are_told &= is_own[slot] || queue.plan_.events != nullptr;
  });
  return are_told ? Result<>() : base::cannot_restore("a queue pair belongs to no application");
}

bool PairsHandover::is_arrival(std::uint64_t target, std::uint64_t size) {
  if (transport::Cookie::of(target).client != transport::Client::queue_pairs) return false;
  const Arrival* const arrival = pairs_.arrivals_.find(target);
  // Answers are placed at once, and their size is that of the request.
  return arrival != nullptr && (arrival->kind == Arrival::Kind::answer || arrival->size == size);
}

}  // namespace fairlead::qp
