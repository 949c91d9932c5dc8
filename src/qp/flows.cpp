#include "qp/flows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/ensure.hpp"

namespace fairlead::qp {

static_assert(transport::EngineClient<Flows>);
namespace {

using verbs::Cause;
using verbs::QpState;
using verbs::QpType;
using verbs::WcStatus;

constexpr std::uint32_t kRegionsMax = 65536;
constexpr std::uint32_t kPoolsMax = 131072;
constexpr std::uint32_t kFlightsMax = 1U << 18;

verbs::WcOpcode opcode_of(verbs::SendOpcode opcode) {
  switch (opcode) {
    case verbs::SendOpcode::write:
    case verbs::SendOpcode::write_imm:
      return verbs::WcOpcode::write;
    case verbs::SendOpcode::read:
      return verbs::WcOpcode::read;
    case verbs::SendOpcode::compare_swap:
      return verbs::WcOpcode::compare_swap;
    case verbs::SendOpcode::fetch_add:
      return verbs::WcOpcode::fetch_add;
    case verbs::SendOpcode::send:
    case verbs::SendOpcode::send_imm:
      break;
  }
  return verbs::WcOpcode::send;
}

}  // namespace

Flows::Flows(transport::Transports* transports, const base::SocketAddress& address, const Bounds& bounds)
    : transports_(transports),
      address_(address),
      bounds_(bounds),
      regions_(kRegionsMax),
      accounts_(std::make_unique<FlowAccount[]>(kFlowsMax)),
      flows_(kFlowsMax),
      generations_(kFlowsMax, 1),
      lives_(kFlowsMax, 0),
      pools_(kPoolsMax),
      flights_(kFlightsMax) {
  for (std::uint32_t index = kFirstIndex; index < kFlowsMax; ++index) free_.push_back(index);
}

Flows::~Flows() = default;

Flow* Flows::find(FlowHandle handle) {
  if (handle.index >= kFlowsMax || !flows_[handle.index]) return nullptr;
  Flow* flow = flows_[handle.index].get();
  return flow->generation == handle.generation ? flow : nullptr;
}

Flow* Flows::find_number(std::uint32_t number) {
  if (number - bounds_.number_first >= kFlowsMax) return nullptr;
  Flow* flow = flows_[number - bounds_.number_first].get();
  return flow == nullptr || flow->is_closing ? nullptr : flow;
}

// Pools and streams --------------------------------------------------------------------------------------------------

Status Flows::open_pool(const PoolPlan& plan, PoolHandle& handle) {
  const std::uint32_t slot = pools_.acquire();
  if (slot == kNone) return Status::no_memory;
  Pool& pool = pools_[slot];
  pool.plan = plan;
  pool.plan.depth = std::max(plan.depth, 1U);
  pool.plan.sges = std::max(plan.sges, 1U);
  pool.is_limit_armed = plan.limit != 0;
  pool.make_room();
  handle = {slot, pools_.generation(slot)};
  return Status::ok;
}

Status Flows::close_pool(PoolHandle handle) {
  Pool* pool = find_pool(handle);
  if (pool == nullptr) return Status::stale;
  if (pool->users != 0) return Status::again;
  *pool = {};
  pools_.release(handle.slot);
  return Status::ok;
}

Status Flows::change_pool(PoolHandle handle, std::uint32_t depth, std::uint32_t limit) {
  Pool* pool = find_pool(handle);
  if (pool == nullptr) return Status::stale;
  if (depth < pool->count() || depth == 0) return Status::invalid;
  if (depth != pool->plan.depth) {
    pool->plan.depth = depth;
    pool->make_room();
  }
  pool->plan.limit = limit;
  pool->is_limit_armed = limit != 0;
  return Status::ok;
}

PoolFacts Flows::pool_facts(PoolHandle handle) {
  const Pool* pool = find_pool(handle);
  if (pool == nullptr) return {};
  return {pool->plan.depth, pool->is_limit_armed ? pool->plan.limit : 0, pool->count()};
}

CompletionStream* Flows::open_completions(const CompletionStream::Plan& plan) {
  streams_.push_back(std::make_unique<CompletionStream>(plan));
  return streams_.back().get();
}

Status Flows::close_completions(CompletionStream* stream) {
  const auto found = std::ranges::find(streams_, stream, &std::unique_ptr<CompletionStream>::get);
  if (found == streams_.end()) return Status::stale;
  if (stream->users != 0) return Status::again;
  std::swap(*found, streams_.back());
  streams_.pop_back();
  return Status::ok;
}

// Life of a flow -----------------------------------------------------------------------------------------------------

Status Flows::open_flow(const FlowPlan& plan, FlowHandle& handle, std::uint32_t& number) {
  if (bounds_.number_first == kNone) return Status::not_available;
  if (free_.empty()) return Status::no_memory;
  PoolHandle pool = plan.shared_pool;
  if (plan.has_shared_pool) {
    if (find_pool(pool) == nullptr) return Status::stale;
  } else if (const Status status = open_pool(
                 {.depth = plan.capacity.max_recv_wr, .sges = plan.capacity.max_recv_sge, .domain = plan.domain}, pool);
             status != Status::ok) {
    return status;
  }
  const std::uint32_t index = free_.front();
  free_.pop_front();
  flows_[index] = std::make_unique<Flow>();
  Flow& flow = *flows_[index];
  flow.plan = plan;
  flow.index = index;
  flow.generation = generations_[index];
  flow.number = number = bounds_.number_first + index;
  flow.pool = pool.slot;
  const verbs::QpCapacity& capacity = plan.capacity;
  const std::size_t ring = std::bit_ceil(capacity.max_send_wr);
  flow.mask = static_cast<std::uint32_t>(ring - 1);
  flow.entries = std::make_unique<SendEntry[]>(ring);
  flow.sges = std::make_unique<verbs::Sge[]>(ring * capacity.max_send_sge);
  flow.inlined = std::make_unique<std::byte[]>(ring * capacity.max_inline);
  flow.receive_sges.resize(pools_[pool.slot].plan.sges);
  ++pools_[pool.slot].users;
  ++plan.send_stream->users;
  ++plan.receive_stream->users;
  discard(flow, now_);
  handle = {index, flow.generation};
  return Status::ok;
}

// Back to the beginning: what was posted is forgotten, completions not yet seen belong to a life that is over.
void Flows::discard(Flow& flow, base::Instant now) {
  // The peer's last request was executed: it shall hear that, whatever becomes of us.
  if (flow.is_answer_owed && flow.has_peer) send_owed(flow, now);
  flow.is_answer_owed = false;
  // Lives go on from one flow of this number to the next.
  flow.life = ++lives_[flow.index];
  accounts_[flow.index].sends.begin_life(flow.life);
  accounts_[flow.index].receives.begin_life(flow.life);
  flow.attributes = {};
  show(flow);
  flow.head = flow.next = flow.tail = flow.begun = flow.acked = flow.answered_end = flow.unretired = flow.reads_out = 0;
  flow.is_paused = flow.is_lost = flow.wants_drained = flow.has_heard = false;
  flow.resume_at = flow.answer_due = flow.not_ready_since = flow.gap_due = base::kNever;
  flow.has_peer = flow.is_local = false;
  drop_arrivals(flow);
  flow.current = {};
  flow.atomics = {};
  if (flow.plan.has_shared_pool) return;
  Pool& pool = pools_[flow.pool];
  pool.head = pool.tail;
  flow.receives_begin = pool.tail;
}

void Flows::begin_close(FlowHandle handle, base::Instant now) {
  now_ = now;
  Flow* flow = find(handle);
  if (flow == nullptr) return;
  flow->is_closing = true;
  discard(*flow, now);
}

bool Flows::is_quiet(FlowHandle handle) {
  const Flow* flow = find(handle);
  return flow == nullptr || flow->flights == 0;
}

// What is in flight to a peer ends with its session at the latest.
void Flows::press_for(FlowHandle handle) {
  const Flow* flow = find(handle);
  if (transports_ == nullptr || flow == nullptr || flow->flights == 0) return;
  if (flow->has_peer) transports_->offences().condemn(flow->peer, transport::Offence::holds_memory);
  flights_.for_each([&](std::uint32_t, const Flight& flight) {
    if (flight.flow == flow->index) transports_->offences().condemn(flight.peer, transport::Offence::holds_memory);
  });
}

void Flows::press_for_region(std::uint32_t key) {
  if (transports_ == nullptr) return;
  flights_.for_each([&](std::uint32_t, const Flight& flight) {
    const auto regions = std::span(flight.regions).first(flight.count);
    if (std::ranges::find(regions, key >> 8) != regions.end())
      transports_->offences().condemn(flight.peer, transport::Offence::holds_memory);
  });
}

void Flows::free_flow(FlowHandle handle) {
  Flow* flow = find(handle);
  if (flow == nullptr) return;
  ENSURE(flow->flights == 0, "flow {} freed with {} messages in the link", flow->number, flow->flights);
  std::erase(owing_, flow->index);
  std::erase(stalled_, flow->index);
  Pool& pool = pools_[flow->pool];
  if (--pool.users == 0 && !flow->plan.has_shared_pool) {
    pool = {};
    pools_.release(flow->pool);
  }
  --flow->plan.send_stream->users;
  --flow->plan.receive_stream->users;
  const std::uint32_t index = flow->index;
  ++generations_[index];
  flows_[index].reset();
  free_.push_back(index);
}

Status Flows::change_flow(FlowHandle handle, QpState from, const verbs::QpAttributes& attributes, base::Instant now) {
  now_ = now;
  Flow* flow = find(handle);
  if (flow == nullptr || flow->is_closing) return Status::stale;
  if (flow->state() != from) return Status::bad_state;
  const QpState to = attributes.state;
  if (to == QpState::reset) {
    discard(*flow, now);
    return Status::ok;
  }
  if (to == QpState::err) {
    const QpState before = flow->state();
    flow->attributes = attributes;
    flow->attributes.state = before;
    enter_error(*flow);
    return Status::ok;
  }
  flow->attributes = attributes;
  if (from == QpState::init && to == QpState::rtr) {
    flow->turn.begin(attributes.rq_psn);
  }
  if (flow->plan.type != QpType::ud && to >= QpState::rtr) {
    flow->peer_address = address_of(attributes.av, attributes.dest_qp_num);
    flow->is_local = is_here(flow->peer_address);
    flow->has_peer = false;
  }
  if (from == QpState::rtr && to == QpState::rts) {
    flow->first_sequence = attributes.sq_psn;
    flow->retries_left = attributes.retry_cnt;
    flow->rnr_left = attributes.rnr_retry;
  }
  if (to == QpState::sqd) {
    flow->wants_drained = from == QpState::rts && attributes.en_sqd_async_notify;
    flow->attributes.is_sq_draining = true;
    check_drained(*flow);
  } else {
    flow->attributes.is_sq_draining = false;
  }
  show(*flow);
  if (to == QpState::rts) pump(*flow, now);
  return Status::ok;
}

FlowFacts Flows::flow_facts(FlowHandle handle) {
  const Flow* flow = find(handle);
  return flow == nullptr ? FlowFacts{} : FlowFacts{flow->attributes};
}

// The state of send queue drained is told once all that was begun has ended.
void Flows::check_drained(Flow& flow) {
  if (flow.state() != QpState::sqd || static_cast<std::int32_t>(flow.begun - flow.head) > 0) return;
  flow.attributes.is_sq_draining = false;
  if (std::exchange(flow.wants_drained, false)) tell(flow, verbs::AsyncEventType::sq_drained);
}

// Errors -------------------------------------------------------------------------------------------------------------

void Flows::tell(const Flow& flow, verbs::AsyncEventType type) {
  if (flow.plan.events != nullptr) flow.plan.events->produce({std::to_underlying(type), flow.plan.cookie});
}

// All that is outstanding is flushed, once each and in order; from now on what is posted is, too.
void Flows::enter_error(Flow& flow) {
  if (flow.state() == QpState::err) return;
  flow.attributes.state = QpState::err;
  show(flow);
  flow.attributes.is_sq_draining = false;
  flow.is_paused = flow.is_lost = false;
  flow.answer_due = flow.gap_due = base::kNever;
  drop_arrivals(flow);
  flush_sends(flow);
  flush_receives(flow);
  if (flow.plan.has_shared_pool) tell(flow, verbs::AsyncEventType::qp_last_wqe_reached);
}

// A completion that finds no room may end the queue pair, which flushes the rest before this goes on.
void Flows::flush_sends(Flow& flow) {
  while (flow.head != flow.tail) {
    SendEntry& entry = flow.entry(flow.head);
    ++flow.head;
    complete_send(flow, entry, WcStatus::wr_flush_err, Cause::none);
  }
  flow.next = flow.begun = flow.acked = flow.tail;
  flow.reads_out = 0;
}

void Flows::flush_receives(Flow& flow) {
  if (std::exchange(flow.current.has_receive, false)) {
    complete_receive(flow, flow.current.receive_id,
                     {.status = WcStatus::wr_flush_err, .opcode = verbs::WcOpcode::receive}, false);
  }
  flow.current = {};
  if (flow.plan.has_shared_pool) return;
  Pool& pool = pools_[flow.pool];
  while (pool.head != pool.tail) {
    const std::uint64_t id = pool.entry(pool.head).id;
    ++pool.head;
    complete_receive(flow, id, {.status = WcStatus::wr_flush_err, .opcode = verbs::WcOpcode::receive}, false);
  }
}

// Completions --------------------------------------------------------------------------------------------------------

void Flows::complete_send(Flow& flow, SendEntry& entry, WcStatus status, Cause cause) {
  const bool is_told =
      status != WcStatus::success || flow.plan.signals_all || (entry.flags & verbs::send_flags::signaled) != 0;
  ++flow.unretired;
  if (!is_told) return;
  const std::uint32_t retires = std::exchange(flow.unretired, 0);
  const auto make = [&](void* place) {
    new (place) FlowEvent{.completion = {.wr_id = entry.id,
                                         .status = status,
                                         .opcode = opcode_of(entry.opcode),
                                         .vendor_err = std::to_underlying(cause),
                                         .byte_len = static_cast<std::uint32_t>(entry.length),
                                         .qp_num = flow.number,
                                         .timestamp_ns = timestamp()},
                          .life = flow.life,
                          .retires = retires};
  };
  if (flow.plan.send_stream->produce(make, status != WcStatus::success)) [[likely]]
    return;
  accounts_[flow.index].sends.add(flow.life, retires);
  on_overrun(flow);
}

void Flows::complete_receive(Flow& flow, std::uint64_t id, verbs::WorkCompletion completion, bool is_solicited) {
  completion.wr_id = id;
  completion.qp_num = flow.number;
  completion.timestamp_ns = timestamp();
  tell_receive(flow, is_solicited || completion.status != WcStatus::success, [&](void* place) {
    new (place) FlowEvent{.completion = completion, .life = flow.life, .retires = retires_of_receive(flow)};
  });
}

void Flows::lose_receive(Flow& flow) {
  accounts_[flow.index].receives.add(flow.life, retires_of_receive(flow) & ~FlowEvent::kOfReceives);
  on_overrun(flow);
}

std::uint64_t Flows::timestamp() const {
  return static_cast<std::uint64_t>(now_.time_since_epoch().count());
}

// A completion found no room. Unless its owner said that this does not matter, the queue pair cannot go on.
void Flows::on_overrun(Flow& flow) {
  ++counters_.completions_lost;
  if (flow.plan.send_stream->plan().ignores_overrun && flow.plan.receive_stream->plan().ignores_overrun) return;
  if (flow.state() == QpState::err) return;
  tell(flow, verbs::AsyncEventType::qp_fatal);
  enter_error(flow);
}

// (address, number) alone lead to an engine: the upper bits of the number are its port's place in the range.
base::SocketAddress Flows::address_of(const verbs::AddressVector& vector, std::uint32_t number) const {
  base::SocketAddress address = address_;
  if (vector.is_global) {
    address.scope = vector.dgid[0] == 0xFE && (vector.dgid[1] & 0xC0) == 0x80 ? address.scope : 0;
    address.ip = vector.dgid;
  } else {
    address.ip[14] = static_cast<std::uint8_t>(vector.dlid >> 8);
    address.ip[15] = static_cast<std::uint8_t>(vector.dlid);
  }
  address.port = static_cast<std::uint16_t>(bounds_.port_first + (number >> 12));
  return address;
}

std::string Flows::describe() const {
  const FlowCounters& c = counters_;
  return describe_direct() +
         fmt::format("requests sent {}, executed {}, repeated {}; duplicates {}, refused {}; held {} (most {} bytes), ",
                     c.requests_sent, c.requests_executed, c.requests_repeated, c.duplicates, c.refused_repeats, c.held,
                     c.held_bytes_most) +
         fmt::format("refused for lack of room {}\nnot ready {}, receiver not ready {}, no receive {}, ",
                     c.refused_no_room, c.refused_not_ready, c.receiver_not_ready, c.dropped_no_receive) +
         fmt::format("wrong queue key {}, gaps {}, malformed {}, late answers {}\n", c.dropped_queue_key, c.dropped_gap,
                     c.dropped_malformed, c.dropped_late_answer) +
         fmt::format("answers sent {}, dropped {}; unreachable {}; completions lost {}; regions {}\n", c.answers_sent,
                     c.dropped_answers, c.dropped_unreachable, c.completions_lost, regions_.used());
}

}  // namespace fairlead::qp
