#include "qp/queue_pairs.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "base/ensure.hpp"

namespace fairlead::qp {

static_assert(transport::EngineClient<QueuePairs>);

using verbs::QpState;
using verbs::QpType;

QueuePairs::QueuePairs(transport::Transports* transports, const base::SocketAddress& address, const Bounds& bounds)
    : shared_{.transports = transports, .address = address, .bounds = bounds}, pairs_(bounds.number_first) {}

QueuePair* QueuePairs::find_open(PairHandle handle) {
  QueuePair* const pair = pairs_.find(handle);
  return pair == nullptr || pair->is_closing ? nullptr : pair;
}

// Receive queues and streams -----------------------------------------------------------------------------------------

Status QueuePairs::close_receive_queue(ReceiveQueueHandle handle) {
  const ReceiveQueue* const queue = receives_.find(handle);
  if (queue != nullptr && queue->xrc_number != 0) {
    // A message that is arriving in this queue loses its receive.
    pairs_.for_each([&](QueuePair& pair) {
      const bool is_its = pair.plan.end == PairEnd::target && pair.current.queue == handle.slot;
      if (is_its && pair.current.has_receive) responder_.lose_receive(pair);
    });
  }
  return receives_.close(handle);
}

Status QueuePairs::change_receive_queue(ReceiveQueueHandle handle, std::uint32_t depth, std::uint32_t limit) {
  ReceiveQueue* const queue = receives_.find(handle);
  return queue == nullptr ? Status::stale : queue->change(depth, limit);
}

ReceiveQueueFacts QueuePairs::receive_queue_facts(ReceiveQueueHandle handle) {
  const ReceiveQueue* const queue = receives_.find(handle);
  return queue == nullptr ? ReceiveQueueFacts{} : queue->facts();
}

int QueuePairs::post_to_receive_queue(ReceiveQueueHandle handle, std::span<const verbs::ReceiveRequest> requests,
                                      std::size_t& taken) {
  taken = 0;
  ReceiveQueue* const queue = receives_.find(handle);
  if (queue == nullptr) return EINVAL;
  for (const verbs::ReceiveRequest& request : requests) {
    if (request.sges.size() > queue->sges_max()) return EINVAL;
    if (queue->is_full()) return ENOMEM;
    queue->post(request);
    ++taken;
  }
  return 0;
}

CompletionStream* QueuePairs::open_completions(const CompletionStream::Plan& plan) {
  streams_.push_back(std::make_unique<CompletionStream>(plan));
  return streams_.back().get();
}

Status QueuePairs::close_completions(CompletionStream* stream) {
  const auto found = std::ranges::find(streams_, stream, &std::unique_ptr<CompletionStream>::get);
  if (found == streams_.end()) return Status::stale;
  if (stream->users != 0) return Status::again;
  std::swap(*found, streams_.back());
  streams_.pop_back();
  return Status::ok;
}

// Life of a queue pair -----------------------------------------------------------------------------------------------

Status QueuePairs::find_receives(const PairPlan& plan, ReceiveQueueHandle& handle) {
  handle = plan.shared_receives;
  if (plan.has_shared_receives) return receives_.find(handle) == nullptr ? Status::stale : Status::ok;
  const verbs::QpCapacity& capacity = plan.capacity;
  return receives_.open({.depth = capacity.max_recv_wr, .sges = capacity.max_recv_sge, .domain = plan.domain}, handle);
}

QueuePair& QueuePairs::add_pair(const PairPlan& plan, ReceiveQueueHandle receives) try {
  std::vector<verbs::Sge> sges(receives_[receives.slot].sges_max());
  QueuePair& pair = pairs_.add(plan);
  pair.receive_sges = std::move(sges);
  return pair;
} catch (const std::bad_alloc&) {
  if (!plan.has_shared_receives) receives_.close(receives);
  throw;
}

Status QueuePairs::open_pair(const PairPlan& plan, PairHandle& handle, std::uint32_t& number) {
  if (shared_.bounds.number_first == base::Slab<int>::kNone) return Status::not_available;
  if (plan.capacity.max_send_sge > kSgesMax) return Status::invalid;
  if (pairs_.is_full()) return Status::no_memory;
  ReceiveQueueHandle receives;
  if (const Status status = find_receives(plan, receives); status != Status::ok) return status;
  QueuePair& pair = add_pair(plan, receives);
  pair.receives = receives.slot;
  ++receives_[receives.slot].users;
  if (plan.send_stream != nullptr) ++plan.send_stream->users;
  if (plan.receive_stream != nullptr) ++plan.receive_stream->users;
  reset(pair);
  if (is_held_) requester_.hold(pair);
  handle = {pair.index, pair.generation};
  number = pair.number;
  return Status::ok;
}

// Returns to the state RESET: posted requests are discarded, and completions not yet consumed belong to an ended
// incarnation.
void QueuePairs::reset(QueuePair& pair) {
  // The peer's last request was executed, and the peer has to learn it.
  if (pair.is_answer_owed && pair.route.has_peer) answers_.send_owed(pair);
  pair.is_answer_owed = false;
  pairs_.begin_incarnation(pair);
  completer_.account(pair).sends.begin_incarnation(pair.incarnation);
  completer_.account(pair).receives.begin_incarnation(pair.incarnation);
  pair.attributes = {};
  published_.publish(pair);
  pair.sends.reset();
  pair.patience.is_paused = pair.patience.is_lost = pair.wants_drained = pair.has_heard = false;
  pair.patience.resume_at = pair.patience.answer_due = pair.patience.not_ready_since = pair.gap_due = base::kNever;
  pair.route.has_peer = pair.route.is_local = pair.route.is_proven = false;
  arrivals_.drop_all(pair);
  pair.current = {};
  pair.atomics = {};
  if (pair.plan.has_shared_receives) return;
  ReceiveQueue& queue = receives_[pair.receives];
  queue.forget_all();
  pair.receives_begin = queue.tail();
}

void QueuePairs::begin_close(PairHandle handle, base::Instant now) {
  shared_.now = now;
  QueuePair* const pair = pairs_.find(handle);
  if (pair == nullptr) return;
  pair->is_closing = true;
  shared_.regions.unbind_windows_of_pair(pair->number);
  reset(*pair);
}

bool QueuePairs::is_quiet(PairHandle handle) {
  const QueuePair* const pair = pairs_.find(handle);
  return pair == nullptr || pair->flights == 0;
}

// A message in flight ends at the latest with the peer's session.
void QueuePairs::press_for(PairHandle handle) {
  const QueuePair* const pair = pairs_.find(handle);
  if (shared_.transports == nullptr || pair == nullptr || pair->flights == 0) return;
  const auto condemn = [&](link::PeerHandle peer) {
    shared_.transports->offences().condemn(peer, transport::Offence::holds_memory);
  };
  if (pair->route.has_peer) condemn(pair->route.peer);
  shared_.flights.for_each_of_pair(pair->index, condemn);
}

void QueuePairs::press_for_region(std::uint32_t key, bool is_from_before) {
  if (shared_.transports == nullptr) return;
  const auto is_its = [&](std::uint32_t hold) { return shared_.regions.is_hold_of(hold, key, is_from_before); };
  shared_.flights.for_each_of_region(is_its, [&](link::PeerHandle peer) {
    shared_.transports->offences().condemn(peer, transport::Offence::holds_memory);
  });
}

void QueuePairs::free_pair(PairHandle handle) {
  QueuePair* const pair = pairs_.find(handle);
  if (pair == nullptr) return;
  ENSURE(pair->flights == 0, "queue pair {} freed with {} messages in flight", pair->number, pair->flights);
  answers_.forget(*pair);
  requester_.forget(*pair);
  groups_.forget(*pair);
  receives_.let_go(pair->receives, !pair->plan.has_shared_receives);
  if (pair->plan.end != PairEnd::target) --pair->plan.send_stream->users;
  if (pair->plan.end == PairEnd::both) --pair->plan.receive_stream->users;
  pairs_.remove(pair->index);
}

Status QueuePairs::change_pair(PairHandle handle, QpState from, const verbs::QpAttributes& attributes,
                               base::Instant now) {
  shared_.now = now;
  shared_.turn.begin();
  QueuePair* const pair = find_open(handle);
  if (pair == nullptr) return Status::stale;
  if (pair->state() != from) return Status::bad_state;
  if (attributes.state == QpState::reset) {
    reset(*pair);
  } else if (attributes.state == QpState::err) {
    fail(*pair, attributes);
  } else {
    apply(*pair, from, attributes);
  }
  return Status::ok;
}

std::uint32_t QueuePairs::published_rights(PairHandle handle) {
  const QueuePair* const pair = find_open(handle);
  return pair == nullptr ? 0 : PublishedTables::rights(*pair);
}

void QueuePairs::fail(QueuePair& pair, const verbs::QpAttributes& attributes) {
  const QpState before = pair.state();
  pair.attributes = attributes;
  pair.attributes.state = before;
  completer_.enter_error(pair);
}

void QueuePairs::apply(QueuePair& pair, QpState from, const verbs::QpAttributes& attributes) {
  const QpState to = attributes.state;
  pair.attributes = attributes;
  if (from == QpState::init && to == QpState::rtr) pair.turn.begin({attributes.rq_psn});
  if (!pair.is(QpType::ud) && to >= QpState::rtr) {
    pair.route.address = shared_.address_of(attributes.av, attributes.dest_qp_num);
    pair.route.is_local = shared_.is_here(pair.route.address);
    pair.route.has_peer = false;
  }
  if (from == QpState::rtr && to == QpState::rts) {
    pair.sends.begin({attributes.sq_psn});
    pair.patience.begin(attributes);
  }
  pair.attributes.is_sq_draining = to == QpState::sqd;
  if (to == QpState::sqd) {
    pair.wants_drained = from == QpState::rts && attributes.en_sqd_async_notify;
    completer_.check_drained(pair);
  }
  published_.publish(pair);
  if (to == QpState::rts) requester_.pump(pair);
}

PairFacts QueuePairs::pair_facts(PairHandle handle) {
  const QueuePair* const pair = pairs_.find(handle);
  return pair == nullptr ? PairFacts{} : PairFacts{pair->attributes, !pair->sends.is_empty()};
}

Result<> QueuePairs::attach_group(PairHandle handle, const verbs::Gid& group, std::uint16_t lid) {
  const QueuePair* const pair = find_open(handle);
  if (pair == nullptr) return std::unexpected(Error{Status::stale, EINVAL, "this queue pair is destroyed"});
  return groups_.attach(*pair, group, lid);
}

Status QueuePairs::detach_group(PairHandle handle, const verbs::Gid& group) {
  const QueuePair* const pair = find_open(handle);
  return pair == nullptr ? Status::stale : groups_.detach(*pair, group);
}

bool QueuePairs::is_in_group(PairHandle handle) {
  const QueuePair* const pair = find_open(handle);
  return pair != nullptr && groups_.is_attached(*pair);
}

// Posting ------------------------------------------------------------------------------------------------------------

bool QueuePairs::is_on_host(PairHandle handle) {
  const QueuePair* const pair = pairs_.find(handle);
  return pair != nullptr && pair->route.has_peer && shm::Transport::has(pair->route.peer);
}

/// Posts requests until one fails, and sets `taken` to the number posted.
int QueuePairs::post(QueuePair& pair, std::span<const verbs::SendRequest> requests, std::size_t& taken) {
  for (taken = 0; taken < requests.size(); ++taken) {
    if (const int error = requester_.post(pair, requests[taken]); error != 0) return error;
  }
  return 0;
}

int QueuePairs::post_send(PairHandle handle, std::span<const verbs::SendRequest> requests, std::size_t& taken,
                          base::Instant now) {
  taken = 0;
  shared_.now = now;
  shared_.turn.begin();
  QueuePair* const pair = find_open(handle);
  if (pair == nullptr) return EINVAL;
  const int error = post(*pair, requests, taken);
  if (taken != 0) requester_.pump(*pair);
  return error;
}

int QueuePairs::post_send_all(PairHandle handle, std::span<const verbs::SendRequest> requests, base::Instant now) {
  shared_.now = now;
  shared_.turn.begin();
  QueuePair* const pair = find_open(handle);
  if (pair == nullptr) return EINVAL;
  const RequestNumber tail = pair->sends.tail();
  std::size_t taken = 0;
  const int error = post(*pair, requests, taken);
  if (error == 0) {
    requester_.pump(*pair);
  } else {
    pair->sends.take_back(tail);  // none has been sent
  }
  return error;
}

int QueuePairs::post_receive(PairHandle handle, std::span<const verbs::ReceiveRequest> requests, std::size_t& taken) {
  taken = 0;
  QueuePair* const pair = find_open(handle);
  if (pair == nullptr || !pair->takes_receives()) return EINVAL;
  for (const verbs::ReceiveRequest& request : requests) {
    if (const int error = post_receive(*pair, request); error != 0) return error;
    ++taken;
  }
  return 0;
}

bool QueuePairs::takes_receives(PairHandle handle, const CompletionStream* stream) {
  const QueuePair* const pair = find_open(handle);
  return pair != nullptr && pair->takes_receives() && pair->plan.receive_stream == stream;
}

int QueuePairs::post_receive(QueuePair& pair, const verbs::ReceiveRequest& request) {
  const verbs::QpCapacity& capacity = pair.plan.capacity;
  ReceiveQueue& queue = receives_[pair.receives];
  if (request.sges.size() > capacity.max_recv_sge) return EINVAL;
  const std::uint32_t retired = completer_.account(pair).receives.count();
  if (count_between(pair.receives_begin, queue.tail()) - retired >= capacity.max_recv_wr) return ENOMEM;
  if (pair.state() == QpState::err) {
    queue.pass();
    completer_.flush_receive(pair, request.id);
  } else {
    queue.post(request);
  }
  return 0;
}

// The engine's side --------------------------------------------------------------------------------------------------

void QueuePairs::deliver(const link::Delivery& delivery, base::Instant now) {
  shared_.now = now;
  if (!delivery.is_first) return take_chunk(delivery);
  switch (delivery.envelope.operation) {
    case wire::Operation::pair_answer:
      return requester_.take_answer(delivery);
    case wire::Operation::pair_datagram:
      return datagrams_.take(delivery);
    default:
      return take_request(delivery);
  }
}

void QueuePairs::take_request(const link::Delivery& delivery) {
  const wire::Envelope& envelope = delivery.envelope;
  QueuePair* const pair = responder_.admit(delivery);
  if (pair == nullptr) return;
  if (has_data(envelope.operation) && (envelope.flags & wire::request_flags::acknowledges) != 0) {
    requester_.take_carried_answer(*pair, envelope);
    // The completion queue may have been full, which ends the queue pair.
    if (!pair->can_receive()) return answers_.refuse(delivery, verbs::Cause::queue_pair_not_ready);
  }
  responder_.take(*pair, delivery);
}

void QueuePairs::take_chunk(const link::Delivery& delivery) {
  const Arrival* const arrival = arrivals_.find(delivery.target);
  if (arrival == nullptr) return;
  const std::uint32_t slot = ReorderBuffer::slot_of(delivery.target);
  switch (arrival->kind) {
    case Arrival::Kind::request:
      return responder_.take_chunk(slot, delivery);
    case Arrival::Kind::answer:
      return requester_.take_answer_chunk(slot, delivery);
    case Arrival::Kind::datagram:
      return datagrams_.take_chunk(slot, delivery);
  }
}

void QueuePairs::end_arrival(std::uint64_t target, Status) {
  const Arrival* const arrival = arrivals_.find(target);
  if (arrival == nullptr) return;
  const std::uint32_t slot = ReorderBuffer::slot_of(target);
  switch (arrival->kind) {
    case Arrival::Kind::request:
      return responder_.end_arrival(slot);
    case Arrival::Kind::answer:
      return arrivals_.release(slot);
    case Arrival::Kind::datagram:
      return arrivals_.release_datagram(slot);
  }
}

/// Requests without a message in flight get no outcome: those that have arrived and wait for an answer, and those that
/// wait to be sent again.
void QueuePairs::end_peer(link::PeerHandle peer, Status status, base::Instant now) {
  shared_.now = now;
  answers_.drop(peer);
  if (pairs_.is_empty()) return;
  pairs_.for_each([&](QueuePair& pair) {
    const bool is_its = pair.is(QpType::rc) && pair.route.has_peer && pair.route.peer == peer;
    if (is_its && pair.can_ask() && pair.sends.is_any_begun()) outstanding_.lose_session(pair, status);
  });
}

bool QueuePairs::is_using(link::PeerHandle peer, const base::SocketAddress& address) {
  bool is_used = answers_.is_any_for(peer);
  pairs_.for_each([&](const QueuePair& pair) {
    const bool is_its = pair.is(QpType::rc) && pair.route.address == address;
    is_used |= is_its && pair.can_ask() && pair.sends.is_any_out() && !pair.patience.is_paused;
  });
  return is_used;
}

void QueuePairs::end_route(link::PeerHandle peer, base::Instant now) {
  shared_.now = now;
  answers_.drop(peer);
  pairs_.for_each([&](QueuePair& pair) {
    PairRoute& route = pair.route;
    if (!route.has_peer || route.peer != peer) return;
    route.has_peer = !pair.is(QpType::ud) && shared_.transports->resolve(route.address, now, route.peer) == Status::ok;
  });
}

bool QueuePairs::progress(base::Instant now) {
  shared_.now = now;
  shared_.turn.begin();
  bool any = answers_.is_any_owed() && answers_.send_all_owed();
  if (answers_.is_any_deferred()) [[unlikely]]
    answers_.retry();
  if (shared_.timers.next() <= now) any |= end_timers();
  if (requester_.is_any_stalled() && !is_held_) [[unlikely]] {
    any |= requester_.awaits_turn();
    requester_.retry_stalled();
  }
  if (!groups_.is_empty()) [[unlikely]]
    any |= group_datagrams_.progress();
  return any;
}

bool QueuePairs::end_timers() {
  constexpr std::size_t kTimersInPass = 256;
  bool any = false;
  for (std::size_t i = 0; i < kTimersInPass && !shared_.turn.is_over(); ++i) {
    const auto index = shared_.timers.take(shared_.now);
    if (!index) break;
    QueuePair& pair = *pairs_.at(*index);
    if (shared_.now >= pair.gap_due) responder_.end_gap(pair);
    requester_.end_wait(pair);
    shared_.timers.set(pair.timer, pair.due());
    any = true;
  }
  return any;
}

// Queue pairs wait for their next turn meanwhile.
void QueuePairs::hold(bool is_held) {
  is_held_ = is_held;
  answers_.hold(is_held);
  if (!is_held) return;
  pairs_.for_each([&](QueuePair& pair) { requester_.hold(pair); });
  requester_.recall_waiting();
}

base::Instant QueuePairs::next_deadline() const {
  const base::Instant at = shared_.timers.next();
  if (answers_.is_any_owed() || (requester_.awaits_turn() && !is_held_)) return base::Instant{};
  if (is_held_) [[unlikely]]
    return at;
  // Acknowledgements make room, and wake a thread. The millisecond is for room made in another way.
  const bool is_waiting = requester_.is_any_stalled() || answers_.is_any_deferred();
  return is_waiting ? std::min(at, shared_.now + std::chrono::milliseconds(1)) : at;
}

void QueuePairs::check() {
  std::vector<std::uint32_t> flights, holds, users;
  std::map<const CompletionStream*, std::uint32_t> of_stream;
  shared_.flights.count(flights, holds);
  shared_.regions.check(holds);
  pairs_.for_each([&](QueuePair& pair) {
    pair.sends.check(pair.number, pair.flights);
    arrivals_.check(pair);
    const std::uint32_t referenced = pair.index < flights.size() ? flights[pair.index] : 0;
    ENSURE(referenced <= pair.flights, "queue pair {}: {} flights by reference, {} in all", pair.number, referenced,
           pair.flights);
    if (pair.receives >= users.size()) users.resize(pair.receives + 1);
    ++users[pair.receives];
    for (const CompletionStream* const stream : {pair.plan.send_stream, pair.plan.receive_stream})
      if (stream != nullptr) ++of_stream[stream];
  });
  arrivals_.check_sum();
  receives_.check(users, of_stream);
  for (const auto& stream : streams_)
    ENSURE(stream->users == of_stream[stream.get()], "a completion stream has {} users, {} feed it", stream->users,
           of_stream[stream.get()]);
}

}  // namespace fairlead::qp
