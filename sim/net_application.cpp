#include "sim/net_application.hpp"

#include <algorithm>
#include <utility>

#include "sim/pattern.hpp"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;
using net::QueueKind;

constexpr std::uint64_t kBufferSize = 24'576;
constexpr std::uint64_t kMessageSize = 6144;  // some messages take several datagrams
constexpr std::size_t kOffersMax = 64;        // remembered, so that some are stale
constexpr base::Duration kEndsWithin = 20ms;  // after a deadline, whatever the peer does

bool is_loss(Status status) {
  return status == Status::unreachable || status == Status::silent || status == Status::restarted ||
         status == Status::refused;
}

}  // namespace

NetApplication::NetApplication(NetShared& shared, net::Domain& domain, std::uint32_t number, std::string address)
    : shared_(shared),
      domain_(domain),
      number_(number),
      address_(std::move(address)),
      is_synchronous_(shared.random.chance(0.5)),
      trials_(shared, domain, address_) {
  if (shared.extras.chance(0.5)) pool_.emplace(shared, domain, number, address_);
  for (Slot& slot : slots_) renew(slot);
  make_machine();
  start();
}

void NetApplication::renew(Slot& slot) {
  slot.is_going = true;
  slot.buffer.reset();  // if queued, its final event comes now
  SIM_STATEMENT(shared_, 1, !slot.is_open, "{}: a buffer went without its final event", address_);
  slot = {};
  auto made = net::Buffer::allocate(domain_, kBufferSize);
  SIM_CHECK(shared_.findings, made.has_value(), "no buffer");
  slot.buffer = std::move(*made);
  (void)slot.buffer->set_callback([this, &slot](const net::BufferEvent& event) { on_event(slot, event); });
}

void NetApplication::make_machine() {
  machine_ = std::make_unique<net::TransferMachine>(
      domain_, [this](const net::MachineEvent& event) { on_machine_event(event); });
  if (is_synchronous_) (void)machine_->deliver_synchronously();
  last_event_ = {};
  if (pool_)
    pool_->attach(*machine_, [this](const net::BufferEvent& event, bool is_first) { on_pool_event(event, is_first); });
  started_told_ = stopped_told_ = 0;
  books_ = {};
}

void NetApplication::start() {
  if (shared_.random.chance(0.5)) {
    const auto started = machine_->start(address_);
    SIM_CHECK(shared_.findings, started.has_value(), "{} did not begin to start", address_);
  } else {
    const auto started = machine_->start_and_wait(address_);
    SIM_CHECK(shared_.findings, started && started->address() == address_, "{} did not start", address_);
  }
}

void NetApplication::on_machine_event(const net::MachineEvent& event) {
  shared_.trace.add(shared_.world.now(),
                    {1, number_, static_cast<std::uint64_t>(event.kind), static_cast<std::uint64_t>(event.next_state)});
  if (event.kind != net::MachineEvent::Kind::state_change) return;
  started_told_ += event.next_state == net::MachineState::started ? 1 : 0;
  stopped_told_ += event.next_state == net::MachineState::stopped ? 1 : 0;
  SIM_CHECK(shared_.findings, started_told_ == 1 && stopped_told_ <= 1, "{} told {} starts and {} stops", address_,
            started_told_, stopped_told_);
}

void NetApplication::act(const std::vector<std::string>& peers) {
  Random& random = shared_.random;
  peers_ = &peers;
  if (is_ending_) {
    if (has_ended()) restart();
    return;
  }
  if (pool_ && shared_.extras.chance(0.2)) pool_->act(*machine_);
  if (machine_->state() == net::MachineState::started) {
    if (shared_.extras.chance(0.003)) trials_.try_addresses();
    if (shared_.extras.chance(0.01))
      kept_ = machine_->create_end_point(peers[shared_.extras.below(peers.size())]).value_or(net::EndPoint());
  }
  Slot& slot = slots_[random.below(slots_.size())];
  const double what = random.share();
  if (what < 0.70) {
    if (!slot.is_open) submit(slot, peers);
  } else if (what < 0.80) {
    const bool was_queued = machine_->cancel(*slot.buffer);
    SIM_STATEMENT(shared_, 4, was_queued == slot.is_open, "{}: cancel says {} of an operation that is {}", address_,
                  was_queued, slot.is_open ? "under way" : "over");
    slot.is_end_asked |= was_queued;
  } else if (what < 0.81) {
    slot.is_end_asked = true;
    renew(slot);
  } else if (what < 0.813) {
    begin_end();
  } else if (is_synchronous_ && what < 0.82) {
    (void)machine_->wait(shared_.world.public_now() + Duration(random.between(0us, 500us)));
  } else if (is_synchronous_) {
    (void)machine_->deliver_all(random.between(1, 16));
  }
}

void NetApplication::check_deadlines() {
  if (is_synchronous_) (void)machine_->deliver_all(1000);
  for (const Slot& slot : slots_)
    SIM_CHECK(
        shared_.findings,
        !slot.is_open || slot.deadline == fairlead::kNever || shared_.world.public_now() <= slot.deadline + kEndsWithin,
        "{}: operation {} of queue {} outlives its deadline", address_, slot.operation, static_cast<int>(slot.kind));
}

void NetApplication::begin_end() {
  if (is_ending_) return;
  is_ending_ = true;
  const bool is_abort = shared_.random.chance(0.5);
  for (Slot& slot : slots_) {
    slot.is_end_asked = true;
    if (!is_abort) machine_->cancel(*slot.buffer);
  }
  const auto stopped = machine_->stop(is_abort ? net::StopMode::abort : net::StopMode::drain);
  SIM_CHECK(shared_.findings, stopped.has_value(), "{} would not stop", address_);
}

void NetApplication::restart() {
  check_books();
  trials_.close(*machine_, std::exchange(kept_, {}));
  ++shared_.restarts;
  is_ending_ = false;
  make_machine();
  start();
}

void NetApplication::check_books() {
  const net::Statistics statistics = machine_->statistics();
  SIM_STATEMENT(shared_, 5, started_told_ == 1 && stopped_told_ == 1, "{} stopped and told {} starts, {} stops",
                address_, started_told_, stopped_told_);
  for (const Slot& slot : slots_)
    SIM_STATEMENT(shared_, 5, !slot.is_open && !slot.buffer->is_queued(), "{} stopped with operation {} under way",
                  address_, slot.operation);
  if (pool_) pool_->check_home();
  for (std::size_t i = 0; i < net::kQueueKinds; ++i) {
    const auto& [adds, deletes, successes, failures, time, bytes, most] = statistics.queues[i];
    SIM_STATEMENT(shared_, 16, adds == books_[i].adds && adds == books_[i].ends,
                  "{} queue {}: {} adds told, {} made, {} ended", address_, i, adds, books_[i].adds, books_[i].ends);
    SIM_STATEMENT(shared_, 16, bytes == books_[i].bytes, "{} queue {}: {} bytes told, {} delivered", address_, i, bytes,
                  books_[i].bytes);
    SIM_CHECK(shared_.findings, deletes <= adds, "{} queue {}: more deletes than adds", address_, i);
    if (static_cast<QueueKind>(i) != QueueKind::message_receive)
      SIM_CHECK(shared_.findings, successes + failures == adds, "{} queue {}: {} and {} ended of {}", address_, i,
                successes, failures, adds);
  }
}

void NetApplication::submit(Slot& slot, const std::vector<std::string>& peers) {
  Random& random = shared_.random;
  slot.operation = ++shared_.operations;
  slot.kind = static_cast<QueueKind>(random.below(net::kQueueKinds));
  slot.length = slot.other = 0;
  slot.filling = {};
  slot.is_end_asked = false;
  if (machine_->state() == net::MachineState::started && shared_.extras.chance(0.02))
    trials_.try_too_late(*machine_, *slot.buffer);
  slot.added = shared_.world.public_now();
  slot.deadline = random.chance(0.3) ? slot.added + Duration(random.between(1us, 200ms)) : fairlead::kNever;
  slot.is_open = true;  // the end may come before add() returns
  const Status status = submit_kind(slot, peers);
  shared_.trace.add(shared_.world.now(), {2, number_, slot.operation, static_cast<std::uint64_t>(slot.kind),
                                          static_cast<std::uint64_t>(status)});
  if (status == Status::ok) {
    ++books_[static_cast<std::size_t>(slot.kind)].adds;
    return;
  }
  slot.is_open = false;
  shared_.messages.erase(slot.operation);
  shared_.puts.erase(slot.operation);
  const bool is_due = status == Status::again || status == Status::no_memory || status == Status::bad_state ||
                      status == Status::too_big || status == Status::stale;
  SIM_CHECK(shared_.findings, is_due, "{}: add() of queue {} says {}", address_, static_cast<int>(slot.kind),
            to_string(status));
  const bool is_started = machine_->state() == net::MachineState::started;
  SIM_CHECK(shared_.findings, status != Status::bad_state || !is_started, "{}: bad state though started", address_);
}

Status NetApplication::submit_kind(Slot& slot, const std::vector<std::string>& peers) {
  Random& random = shared_.random;
  net::Buffer& buffer = *slot.buffer;
  const auto offer = [&](QueueKind kind, std::uint64_t size) {
    if (shared_.offers.size() == kOffersMax) shared_.offers.erase(shared_.offers.begin());
    shared_.offers.push_back({buffer.descriptor(), kind, slot.operation, size});
  };
  const auto any_offer = [&](QueueKind kind) -> const NetOffer* {
    if (shared_.offers.empty()) return nullptr;
    const NetOffer& found = shared_.offers[random.below(shared_.offers.size())];
    if (found.kind != kind) return nullptr;
    if (machine_->state() == net::MachineState::started && shared_.extras.chance(0.05))
      trials_.try_damaged(*machine_, buffer, found);
    return &found;
  };
  switch (slot.kind) {
    case QueueKind::message_receive: {
      slot.filling.messages_left = static_cast<std::uint32_t>(random.between(1, 8));
      slot.length = kBufferSize;
      return machine_->add(
          buffer, net::MessageReceive{
                      .size_min = kMessageSize, .messages_max = slot.filling.messages_left, .deadline = slot.deadline});
    }
    case QueueKind::message_send: {
      const auto to = static_cast<std::uint32_t>(random.below(peers.size()));
      const auto end_point = machine_->create_end_point(peers[to]);
      if (!end_point) return end_point.error().status;
      slot.length = random.mostly_small(kNamedSize, kMessageSize);
      fill_pattern(buffer.segment(0).first(slot.length), slot.operation);
      shared_.messages[slot.operation] = {to, slot.length, address_};
      return machine_->add(buffer,
                           net::MessageSend{.to = *end_point, .length = slot.length, .deadline = slot.deadline});
    }
    case QueueKind::passive_bulk_receive: {
      slot.length = kBufferSize;
      const Status status = machine_->add(buffer, net::PassiveReceive{.deadline = slot.deadline});
      if (status == Status::ok) offer(slot.kind, slot.length);
      return status;
    }
    case QueueKind::passive_bulk_send: {
      slot.length = random.mostly_small(kNamedSize, kBufferSize);
      fill_pattern(buffer.segment(0).first(slot.length), slot.operation);
      const Status status = machine_->add(buffer, net::PassiveSend{.length = slot.length, .deadline = slot.deadline});
      if (status == Status::ok) offer(slot.kind, slot.length);
      return status;
    }
    case QueueKind::active_bulk_receive: {
      const NetOffer* found = any_offer(QueueKind::passive_bulk_send);
      if (found == nullptr) return Status::again;
      slot.length = found->size;
      slot.other = found->operation;
      return machine_->add(buffer, net::ActiveReceive{.descriptor = found->descriptor, .deadline = slot.deadline});
    }
    case QueueKind::active_bulk_send: {
      const NetOffer* found = any_offer(QueueKind::passive_bulk_receive);
      if (found == nullptr) return Status::again;
      slot.length = random.mostly_small(kNamedSize, kBufferSize);
      slot.other = found->operation;
      fill_pattern(buffer.segment(0).first(slot.length), slot.operation);
      shared_.puts[slot.operation] = {static_cast<std::uint32_t>(found->operation), slot.length, address_};
      return machine_->add(
          buffer, net::ActiveSend{.descriptor = found->descriptor, .length = slot.length, .deadline = slot.deadline});
    }
  }
  return Status::invalid;
}

bool NetApplication::may_end_as(const Slot& slot, Status status) const {
  if (status == Status::ok || is_loss(status)) return true;
  if (status == Status::canceled) return slot.is_end_asked;
  if (status == Status::timed_out) return slot.deadline <= shared_.world.public_now();
  const bool is_active = slot.kind == QueueKind::active_bulk_receive || slot.kind == QueueKind::active_bulk_send;
  return status == Status::stale && is_active;
}

// Callbacks of a machine do not nest, come in the order in which the engine completed the operations, and none follows
// `stopped`.
void NetApplication::check_turn(const net::BufferEvent& event) {
  SIM_STATEMENT(shared_, 1, stopped_told_ == 0, "{}: an event after the stop", address_);
  SIM_STATEMENT(shared_, 2, !is_calling_ && event.time >= last_event_, "{}: an event inside or before another one",
                address_);
  last_event_ = event.time;
}

void NetApplication::on_pool_event(const net::BufferEvent& event, bool is_first) {
  check_turn(event);
  Book& book = books_[static_cast<std::size_t>(QueueKind::message_receive)];
  book.adds += is_first ? 1 : 0;
  book.ends += event.is_final ? 1 : 0;
  book.bytes += event.length;
  const bool is_due = event.status == Status::ok || is_loss(event.status) || event.status == Status::canceled;
  SIM_CHECK(shared_.findings, is_due && event.queue == QueueKind::message_receive,
            "{}: a pool's buffer ended as {} of queue {}", address_, to_string(event.status),
            static_cast<int>(event.queue));
  shared_.succeeded += event.status == Status::ok ? 1 : 0;
}

void NetApplication::on_event(Slot& slot, const net::BufferEvent& event) {
  const fairlead::Instant now = shared_.world.public_now();
  shared_.trace.add(shared_.world.now(), {3, number_, slot.operation, static_cast<std::uint64_t>(event.status),
                                          event.length, event.offset, event.is_final ? 1U : 0U});
  check_turn(event);
  is_calling_ = true;
  SIM_STATEMENT(shared_, 1, slot.is_open, "{}: an event for operation {}, which is over", address_, slot.operation);
  SIM_CHECK(shared_.findings, event.queue == slot.kind, "{}: an event of another queue", address_);
  SIM_CHECK(shared_.findings, may_end_as(slot, event.status), "{}: operation {} of queue {} ended as {}", address_,
            slot.operation, static_cast<int>(slot.kind), to_string(event.status));
  SIM_CHECK(shared_.findings, event.time >= slot.added && event.time <= now, "{}: operation {} ended out of time",
            address_, slot.operation);
  SIM_STATEMENT(shared_, 8, slot.deadline == fairlead::kNever || event.time <= slot.deadline + kEndsWithin,
                "{}: operation {} ended {} ms after its deadline", address_, slot.operation,
                std::chrono::duration_cast<std::chrono::milliseconds>(event.time - slot.deadline).count());
  SIM_STATEMENT(shared_, 6, event.is_final || (slot.kind == QueueKind::message_receive && event.status == Status::ok),
                "{}: an end that is none", address_);
  Book& book = books_[static_cast<std::size_t>(slot.kind)];
  if (event.status == Status::ok) {
    ++shared_.succeeded;
    check_arrival(slot, event);
    if (slot.kind == QueueKind::message_send) shared_.messages.at(slot.operation).has_ended_well = true;
    if (slot.kind == QueueKind::active_bulk_send) shared_.puts.at(slot.operation).has_ended_well = true;
    const bool is_receive = slot.kind == QueueKind::message_receive || slot.kind == QueueKind::passive_bulk_receive ||
                            slot.kind == QueueKind::active_bulk_receive;
    book.bytes += is_receive ? event.length : slot.length;
  }
  is_calling_ = false;
  if (!event.is_final) return;
  // Overwrites memory that the engine has read: a late read gets other bytes, which the receiver detects.
  const bool is_read = slot.kind == QueueKind::message_send || slot.kind == QueueKind::passive_bulk_send ||
                       slot.kind == QueueKind::active_bulk_send;
  if (is_read) std::ranges::fill(event.buffer.segment(0), std::byte{0xdb});
  ++book.ends;
  slot.is_open = false;
  if (slot.is_going || is_ending_ || peers_ == nullptr || !shared_.extras.chance(0.2)) return;
  is_calling_ = true;
  submit(slot, *peers_);  // the final callback may add its buffer again
  is_calling_ = false;
  SIM_STATEMENT(shared_, 3, slot.is_open == slot.buffer->is_queued(), "{}: operation {} of a callback is {}queued",
                address_, slot.operation, slot.is_open ? "not " : "");
}

void NetApplication::check_arrival(Slot& slot, const net::BufferEvent& event) {
  switch (slot.kind) {
    case QueueKind::message_receive:
      shared_.check_place(slot.filling, event, kMessageSize, address_);
      return shared_.check_arrival(shared_.messages, number_, event, address_);
    case QueueKind::passive_bulk_receive:
      return shared_.check_arrival(shared_.puts, static_cast<std::uint32_t>(slot.operation), event, address_);
    case QueueKind::active_bulk_receive:
      SIM_CHECK(shared_.findings,
                event.length == slot.length && !find_wrong(event.buffer.bytes(event.offset, event.length), slot.other),
                "{}: a damaged transfer of {} bytes, {} wanted", address_, event.length, slot.length);
      return;
    default:
      return;
  }
}

}  // namespace fairlead::sim
