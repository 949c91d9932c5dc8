#include <fairlead/verbs/queue_pair.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <string>

#include "verbs/domain_state.hpp"
#include "verbs/queue_state.hpp"
#include "verbs/shared_receive_state.hpp"
#include "verbs/transitions.hpp"
#include "verbs/xrc_domain_state.hpp"

namespace fairlead::verbs {

struct PairState {
  ~PairState() { close(); }

  bool is_dead() const { return context->is_dead(); }

  /// Adds a handle. Returns false if the last one has left.
  bool join() {
    std::uint32_t count = handles;
    while (count != 0 && !handles.compare_exchange_weak(count, count + 1)) {
    }
    return count != 0;
  }

  /// Removes a handle; the last one closes the queue pair. Returns false if no handle is left. Several threads may
  /// destroy one queue pair. The count alone decides which of them closes it, because closing releases the members
  /// below.
  bool leave() {
    std::uint32_t count = handles;
    while (count != 0 && !handles.compare_exchange_weak(count, count - 1)) {
    }
    return count > 1 || (count == 1 && close());
  }

  /// Returns false if it is closed already. To other threads inside a call, the queue pair then no longer exists.
  bool close() {
    if (!is_open.exchange(false)) return false;
    if (!context->is_dead()) {
      context->pair_core->close_pair(pair);
      context->event_owners.remove(number_in_context, *context->events);
    }
    if (send_queue) send_queue->users.drop();
    if (receive_queue) receive_queue->users.drop();
    if (shared_receive) shared_receive->users.drop();
    if (domain) domain->members.drop();
    if (xrc_domain) xrc_domain->members.drop();
    context->pairs.give();
    send_queue.reset();
    receive_queue.reset();
    shared_receive.reset();
    domain.reset();
    xrc_domain.reset();
    return true;
  }

  std::shared_ptr<ContextState> context;
  std::shared_ptr<DomainState> domain;         // released on close, as are the queues
  std::shared_ptr<XrcDomainState> xrc_domain;  // of an XRC target, which uses only this
  std::atomic<std::uint32_t> handles{1};       // an XRC target may have several
  std::shared_ptr<QueueState> send_queue, receive_queue;
  std::shared_ptr<SharedReceiveState> shared_receive;
  qp::PairCore* pair_core = nullptr;
  qp::PairHandle pair;
  std::uint32_t number = 0;
  std::uint64_t number_in_context = 0;
  QpType type = QpType::rc;
  QpCapacity capacity;
  std::atomic<bool> is_open{false};
  std::mutex changing;
};

namespace {

Result<> check(const DeviceLimits& limits, const QpOptions& options) {
  const QpCapacity& wanted = options.capacity;
  const bool is_initiator = options.type == QpType::xrc_send;
  if (options.type != QpType::rc && options.type != QpType::uc && options.type != QpType::ud && !is_initiator) {
    return failure(EOPNOTSUPP, "queue pair: only RC, UC, UD and XRC are supported, XRC targets by create_target()");
  }
  const auto has = [](const CompletionQueue* queue) { return queue != nullptr && queue->state(); };
  if (!has(options.send_queue) || (!is_initiator && !has(options.receive_queue))) {
    return failure(EINVAL, "queue pair: it needs a completion queue for each direction");
  }
  if (is_initiator && options.shared_receive != nullptr) {
    return failure(EINVAL, "queue pair: an XRC initiator receives nothing");
  }
  if (options.shared_receive != nullptr && options.type == QpType::uc) {
    return failure(EOPNOTSUPP, "queue pair: UC has no shared receive queue");
  }
  const bool owns_receives = options.shared_receive == nullptr;
  if (wanted.max_send_wr > limits.max_qp_wr || wanted.max_send_sge > limits.max_sge ||
      wanted.max_inline > limits.max_inline ||
      (owns_receives && (wanted.max_recv_wr > limits.max_qp_wr || wanted.max_recv_sge > limits.max_sge))) {
    return failure(EINVAL, "queue pair: capacity beyond the device's limits: at most " +
                               std::to_string(limits.max_qp_wr) + " requests, " + std::to_string(limits.max_sge) +
                               " SGEs and " + std::to_string(limits.max_inline) + " inline bytes");
  }
  return {};
}

/// Opens the queue pair in the engine. On failure, releases all resources taken for it.
Result<> open(PairState& state, const qp::PairPlan& plan) {
  ContextState& context = *state.context;
  auto opened = context.pair_core->open_pair(plan);
  if (opened) {
    state.pair = opened->handle;
    state.number = opened->number;
    return {};
  }
  context.event_owners.remove(state.number_in_context, *context.events);
  context.pairs.give();
  return failure(std::move(opened.error()));
}

}  // namespace

Result<QueuePair> QueuePair::create_target(const XrcDomain& domain, std::uint64_t cookie) {
  const auto& owner = domain.state();
  if (!owner) return failure(EINVAL, "this XRC domain is closed");
  ContextState& context = *owner->context;
  if (auto alive = check_alive(context); !alive) return std::unexpected(std::move(alive.error()));
  if (!context.pairs.take()) return failure(ENOMEM, "all queue pairs of the device are in use");
  auto state = std::make_shared<PairState>();
  state->context = owner->context;
  state->xrc_domain = owner;
  state->pair_core = context.pair_core;
  state->type = QpType::xrc_recv;
  state->capacity = {.max_send_wr = 0, .max_recv_wr = 0, .max_send_sge = 0, .max_recv_sge = 0};
  state->number_in_context = context.event_owners.add(cookie);
  qp::PairPlan plan{.capacity = state->capacity, .end = qp::PairEnd::target, .xrc_domain = owner->number};
  plan.events = context.events;
  plan.cookie = state->number_in_context;
  if (auto opened = open(*state, plan); !opened) return std::unexpected(std::move(opened.error()));
  owner->members.add();
  state->is_open = true;
  const std::scoped_lock lock(owner->mutex);
  std::erase_if(owner->targets, [](const auto& each) { return each.expired(); });
  owner->targets.push_back(state);
  return QueuePair(std::move(state));
}

Result<QueuePair> QueuePair::open_target(const XrcDomain& domain, std::uint32_t number) {
  const auto& owner = domain.state();
  if (!owner) return failure(EINVAL, "this XRC domain is closed");
  if (auto alive = check_alive(*owner->context); !alive) return std::unexpected(std::move(alive.error()));
  const std::scoped_lock lock(owner->mutex);
  for (const auto& each : owner->targets) {
    auto state = each.lock();
    if (!state || state->number != number || !state->join()) continue;
    return QueuePair(std::move(state));
  }
  return failure(EINVAL,
                 "the XRC domain has no target of that number in this process: those of other processes are in their "
                 "engines, so open it in the process that created it");
}

Result<QueuePair> QueuePair::create(const ProtectionDomain& domain, const QpOptions& options) {
  const auto& owner = domain.state();
  if (!owner) return failure(EINVAL, "this protection domain is deallocated");
  ContextState& context = *owner->context;
  if (auto alive = check_alive(context); !alive) return std::unexpected(std::move(alive.error()));
  if (auto usable = check(context.limits, options); !usable) return std::unexpected(std::move(usable.error()));
  if (!context.pairs.take()) return failure(ENOMEM, "all queue pairs of the device are in use");

  auto state = std::make_shared<PairState>();
  state->context = owner->context;
  state->domain = owner;
  state->send_queue = options.send_queue->state();
  const bool is_initiator = options.type == QpType::xrc_send;
  if (!is_initiator) state->receive_queue = options.receive_queue->state();
  state->pair_core = context.pair_core;
  state->type = options.type;
  state->capacity = options.capacity;
  state->capacity.max_send_wr = std::max(options.capacity.max_send_wr, 1U);
  state->capacity.max_send_sge = std::max(options.capacity.max_send_sge, 1U);
  // As on other devices, a program may inline as much as its SGEs take, without asking for it; here up to a cache line.
  // An atomic write can always be inlined, because its C call copies the value.
  constexpr std::uint32_t kInlinePerSge = 16, kInlineUnasked = 64;
  state->capacity.max_inline =
      std::max(options.capacity.max_inline, std::min(kInlinePerSge * state->capacity.max_send_sge, kInlineUnasked));
  if (options.shared_receive != nullptr) state->shared_receive = options.shared_receive->state();
  if (options.shared_receive != nullptr || is_initiator) {
    state->capacity.max_recv_wr = state->capacity.max_recv_sge = 0;
  } else {
    state->capacity.max_recv_wr = std::max(options.capacity.max_recv_wr, 1U);
    state->capacity.max_recv_sge = std::max(options.capacity.max_recv_sge, 1U);
  }
  state->number_in_context = context.event_owners.add(options.cookie);
  qp::PairPlan plan{.type = is_initiator ? QpType::rc : options.type,
                    .capacity = state->capacity,
                    .signals_all = options.signals_all,
                    .domain = owner->number,
                    .end = is_initiator ? qp::PairEnd::initiator : qp::PairEnd::both,
                    .send_stream = state->send_queue->stream,
                    .receive_stream = is_initiator ? nullptr : state->receive_queue->stream,
                    .shared_receives = {},
                    .has_shared_receives = state->shared_receive != nullptr,
                    .events = context.events,
                    .cookie = state->number_in_context};
  if (state->shared_receive) plan.shared_receives = state->shared_receive->receives;
  if (auto opened = open(*state, plan); !opened) return std::unexpected(std::move(opened.error()));
  state->send_queue->users.add();
  if (state->receive_queue) state->receive_queue->users.add();
  if (state->shared_receive) state->shared_receive->users.add();
  owner->members.add();
  state->is_open = true;
  return QueuePair(std::move(state));
}

QueuePair& QueuePair::operator=(QueuePair&&) noexcept = default;
QueuePair::~QueuePair() = default;

Result<> QueuePair::destroy() {
  const bool can_be_attached = state_ && state_->is_open && state_->type == QpType::ud && !state_->is_dead();
  if (can_be_attached && state_->pair_core->is_in_group(state_->pair))
    return failure(EBUSY, "this queue pair is attached to a multicast group: detach it first");
  if (!state_ || !state_->leave()) return failure(EINVAL, "this queue pair is destroyed already");
  if (state_->is_open) state_.reset();  // other handles keep the target open; this handle becomes empty
  return {};
}

std::uint32_t QueuePair::number() const noexcept {
  return state_->number;
}
PairAddress QueuePair::address() const noexcept {
  return {.gid = state_->context->device.gid, .number = state_->number};
}
QpType QueuePair::type() const noexcept {
  return state_->type;
}
const QpCapacity& QueuePair::capacity() const noexcept {
  return state_->capacity;
}

Result<> QueuePair::modify(const QpAttributes& attributes, std::uint32_t mask) {
  if (!state_ || !state_->is_open) return failure(EINVAL, "this queue pair is destroyed");
  const ContextState& context = *state_->context;
  if (auto alive = check_alive(context); !alive) return alive;
  const std::scoped_lock lock(state_->changing);
  constexpr int kTriesMost = 16;  // the queue pair may fail meanwhile; each time it gets closer to ERR
  for (int i = 0; i < kTriesMost; ++i) {
    QpAttributes wanted = state_->pair_core->pair_facts(state_->pair).attributes;
    const QpState from = wanted.state;
    const QpState to = (mask & qp_mask::state) != 0 ? attributes.state : from;
    if (to > QpState::err) return failure(EINVAL, "queue pair: no such state");
    if ((mask & qp_mask::cur_state) != 0 && attributes.cur_state != from) {
      return failure(EINVAL, std::string("queue pair: cur_state does not hold, it is in ") + name_of(from));
    }
    if (auto legal = check_transition(state_->type, from, to, mask); !legal) return legal;
    if (auto usable = check_values(context, attributes, mask); !usable) return usable;
    merge(wanted, attributes, mask);
    wanted.state = to;
    if ((mask & qp_mask::en_sqd_async_notify) == 0) wanted.en_sqd_async_notify = false;
    const Status status = state_->pair_core->change_pair(state_->pair, from, wanted);
    if (status == Status::ok) return {};
    if (status != Status::bad_state)
      return failure(status, "queue pair: the engine refused the change: " + std::string(to_string(status)));
  }
  return failure(EINVAL, "queue pair: its state changes all the time");
}

QpAttributes QueuePair::query() const {
  if (state_->is_dead()) return {};
  QpAttributes attributes = state_->pair_core->pair_facts(state_->pair).attributes;
  attributes.cur_state = attributes.state;
  return attributes;
}

QpState QueuePair::state() const noexcept {
  return state_->is_dead() ? QpState::err : state_->pair_core->pair_facts(state_->pair).attributes.state;
}

Result<> QueuePair::attach_multicast(const Gid& group, std::uint16_t lid) {
  if (!state_ || !state_->is_open) return failure(EINVAL, "this queue pair is destroyed");
  if (auto alive = check_alive(*state_->context); !alive) return alive;
  return state_->pair_core->attach_group(state_->pair, group, lid);
}

Result<> QueuePair::detach_multicast(const Gid& group) {
  if (!state_ || !state_->is_open) return failure(EINVAL, "this queue pair is destroyed");
  if (auto alive = check_alive(*state_->context); !alive) return alive;
  if (state_->pair_core->detach_group(state_->pair, group) != Status::ok)
    return failure(EINVAL, "this queue pair is not attached to that multicast group");
  return {};
}

int QueuePair::post_send(std::span<const SendRequest> requests, std::size_t& taken) noexcept {
  taken = 0;
  if (state_->is_dead()) [[unlikely]]
    return EIO;
  return state_->pair_core->post_send(state_->pair, requests, taken);
}

int QueuePair::post_send_all(std::span<const SendRequest> requests) noexcept {
  if (state_->is_dead()) [[unlikely]]
    return EIO;
  return state_->pair_core->post_send_all(state_->pair, requests);
}

int QueuePair::post_receive(std::span<const ReceiveRequest> requests, std::size_t& taken) noexcept {
  taken = 0;
  if (state_->is_dead()) [[unlikely]]
    return EIO;
  return state_->pair_core->post_receive(state_->pair, requests, taken);
}

}  // namespace fairlead::verbs
