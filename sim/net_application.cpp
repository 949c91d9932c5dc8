#include "sim/net_application.hpp"

#include <algorithm>

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
      is_synchronous_(shared.random.chance(0.5)) {
  for (Slot& slot : slots_) renew(slot);
  make_machine();
  start();
}

void NetApplication::renew(Slot& slot) {
  slot.buffer.reset();  // if queued, its final event comes now
  SIM_CHECK(shared_.findings, !slot.is_open, "{}: a buffer went without its final event", address_);
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
  if (is_ending_) {
    if (has_ended()) restart();
    return;
  }
  Slot& slot = slots_[random.below(slots_.size())];
  const double what = random.share();
  if (what < 0.70) {
    if (!slot.is_open) submit(slot, peers);
  } else if (what < 0.80) {
    const bool was_queued = machine_->cancel(*slot.buffer);
    SIM_CHECK(shared_.findings, was_queued == slot.is_open, "{}: cancel says {} of an operation that is {}", address_,
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
  const auto closed = machine_->close();
  SIM_CHECK(shared_.findings, closed.has_value(), "{} would not close: {}", address_,
            closed ? "" : closed.error().message);
  ++shared_.restarts;
  is_ending_ = false;
  make_machine();
  start();
}

void NetApplication::check_books() {
  const net::Statistics statistics = machine_->statistics();
  SIM_CHECK(shared_.findings, started_told_ == 1 && stopped_told_ == 1, "{} stopped and told {} starts, {} stops",
            address_, started_told_, stopped_told_);
  for (const Slot& slot : slots_)
    SIM_CHECK(shared_.findings, !slot.is_open && !slot.buffer->is_queued(), "{} stopped with operation {} under way",
              address_, slot.operation);
  for (std::size_t i = 0; i < net::kQueueKinds; ++i) {
    const auto& [adds, deletes, successes, failures, time, bytes, most] = statistics.queues[i];
    SIM_CHECK(shared_.findings, adds == books_[i].adds && adds == books_[i].ends,
              "{} queue {}: {} adds told, {} made, {} ended", address_, i, adds, books_[i].adds, books_[i].ends);
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
  slot.length = slot.other = slot.end_of_last = 0;
  slot.is_end_asked = false;
  slot.messages_left = 1;
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
    return found.kind == kind ? &found : nullptr;
  };
  switch (slot.kind) {
    case QueueKind::message_receive: {
      slot.messages_left = static_cast<std::uint32_t>(random.between(1, 8));
      slot.length = kBufferSize;
      return machine_->add(
          buffer,
          net::MessageReceive{.size_min = kMessageSize, .messages_max = slot.messages_left, .deadline = slot.deadline});
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

void NetApplication::on_event(Slot& slot, const net::BufferEvent& event) {
  const fairlead::Instant now = shared_.world.public_now();
  shared_.trace.add(shared_.world.now(), {3, number_, slot.operation, static_cast<std::uint64_t>(event.status),
                                          event.length, event.offset, event.is_final ? 1U : 0U});
  SIM_CHECK(shared_.findings, slot.is_open, "{}: an event for operation {}, which is over", address_, slot.operation);
  SIM_CHECK(shared_.findings, event.queue == slot.kind, "{}: an event of another queue", address_);
  SIM_CHECK(shared_.findings, may_end_as(slot, event.status), "{}: operation {} of queue {} ended as {}", address_,
            slot.operation, static_cast<int>(slot.kind), to_string(event.status));
  SIM_CHECK(shared_.findings, event.time >= slot.added && event.time <= now, "{}: operation {} ended out of time",
            address_, slot.operation);
  SIM_CHECK(shared_.findings, slot.deadline == fairlead::kNever || event.time <= slot.deadline + kEndsWithin,
            "{}: operation {} ended {} ms after its deadline", address_, slot.operation,
            std::chrono::duration_cast<std::chrono::milliseconds>(event.time - slot.deadline).count());
  SIM_CHECK(shared_.findings, event.is_final || slot.kind == QueueKind::message_receive, "{}: an end that is none",
            address_);
  if (event.status == Status::ok) {
    ++shared_.succeeded;
    check_arrival(slot, event);
    if (slot.kind == QueueKind::message_send) shared_.messages.at(slot.operation).has_ended_well = true;
    if (slot.kind == QueueKind::active_bulk_send) shared_.puts.at(slot.operation).has_ended_well = true;
  }
  if (!event.is_final) return;
  // Overwrites memory that the engine has read: a late read gets other bytes, which the receiver detects.
  const bool is_read = slot.kind == QueueKind::message_send || slot.kind == QueueKind::passive_bulk_send ||
                       slot.kind == QueueKind::active_bulk_send;
  if (is_read) std::ranges::fill(event.buffer.segment(0), std::byte{0xdb});
  ++books_[static_cast<std::size_t>(slot.kind)].ends;
  slot.is_open = false;
}

void NetApplication::check_arrival(Slot& slot, const net::BufferEvent& event) {
  const auto bytes = event.buffer.bytes(event.offset, event.length);
  const auto take = [&](std::map<std::uint64_t, NetSending>& sendings, std::uint32_t to, const char* what) {
    const auto found = sendings.find(name_in(bytes));
    SIM_CHECK(shared_.findings, found != sendings.end(), "{}: a {} that nobody sent", address_, what);
    if (found == sendings.end()) return;
    NetSending& sending = found->second;
    SIM_CHECK(shared_.findings, sending.to == to, "{}: a {} for somebody else", address_, what);
    SIM_CHECK(shared_.findings, sending.size == event.length, "{}: a {} of {} bytes has {}, operation {}", address_,
              what, sending.size, event.length, found->first);
    SIM_CHECK(shared_.findings, !find_wrong(bytes, found->first), "{}: a damaged {}", address_, what);
    SIM_CHECK(shared_.findings, !sending.has_arrived, "{}: a {} arrived twice", address_, what);
    sending.has_arrived = true;
    if (event.sender)
      SIM_CHECK(shared_.findings, event.sender.address() == sending.sender, "{} is not {}", event.sender.address(),
                sending.sender);
  };
  switch (slot.kind) {
    case QueueKind::message_receive:
      SIM_CHECK(shared_.findings, slot.messages_left > 0, "{}: more messages than asked for", address_);
      SIM_CHECK(shared_.findings, event.offset >= slot.end_of_last, "{}: messages overlap", address_);
      --slot.messages_left;
      slot.end_of_last = event.offset + event.length;
      return take(shared_.messages, number_, "message");
    case QueueKind::passive_bulk_receive:
      return take(shared_.puts, static_cast<std::uint32_t>(slot.operation), "transfer");
    case QueueKind::active_bulk_receive:
      SIM_CHECK(shared_.findings, event.length == slot.length && !find_wrong(bytes, slot.other),
                "{}: a damaged transfer of {} bytes, {} wanted", address_, event.length, slot.length);
      return;
    default:
      return;
  }
}

}  // namespace fairlead::sim
