// Events: from the Core to the callbacks, on whichever thread has the turn.

#include <algorithm>
#include <utility>

#include "base/ensure.hpp"
#include "net/clock.hpp"
#include "net/machine.hpp"

namespace fairlead::net {
namespace {

constexpr auto kFinishStep = std::chrono::milliseconds(10);

// An operation that its deadline ended is told so only if nothing else came first.
Status status_of(const engine::Completion& completion, BufferState::Ender ender) {
  const bool is_overdue = completion.status == Status::canceled && ender == BufferState::Ender::deadline;
  return is_overdue ? Status::timed_out : completion.status;
}

bool is_receive(QueueKind kind) {
  return kind == QueueKind::message_receive || kind == QueueKind::passive_bulk_receive ||
         kind == QueueKind::active_bulk_receive;
}

// Nobody can handle what leaves a callback: noexcept makes it end the process, as documented.
void call_back(BufferState& buffer, const BufferEvent& event) noexcept {
  buffer.callbacks[std::to_underlying(event.queue)](event);
}

}  // namespace

// Takes the next events from the Core and closes the account with them. The ones before have been told.
bool Machine::take_events(std::size_t most, Look look) {
  const std::span to = std::span(taken_).first(std::min(most, kTakenMax));
  next_taken_ = 0;
  end_taken_ = look == Look::pass ? core_->poll(port_, to) : core_->next_events(port_, to);
  std::uint32_t released = 0;
  for (engine::Completion& completion : std::span(taken_).first(end_taken_)) {
    BufferState& buffer = BufferState::of(completion.cookie);
    ENSURE(buffer.machine.load(std::memory_order_relaxed) == this, "an event for a buffer that is not queued here");
    completion.status = status_of(completion, buffer.ender);
    note(buffer, completion);
    if (!completion.is_final) continue;
    queued_.erase(queued_.iterator_to(buffer));
    deadlines_.remove(buffer);
    released += buffer.events;
  }
  if (released > 0) core_->release_events(port_, released);
  return end_taken_ != 0;
}

void Machine::note(const BufferState& buffer, const engine::Completion& completion) {
  QueueStatistics& queue = statistics_.queues[std::to_underlying(buffer.kind)];
  if (completion.is_final) queue.time_in_queue += to_public(completion.time_ns) - buffer.added;
  if (completion.status != Status::ok) {
    ++queue.failures;
    return;
  }
  ++queue.successes;
  const std::uint64_t bytes = is_receive(buffer.kind) ? completion.length : buffer.length;
  queue.bytes_total += bytes;
  queue.bytes_max = std::max(queue.bytes_max, bytes);
}

// Tells what was taken, at most so many. The lock is open meanwhile; callbacks may come back here.
std::size_t Machine::tell_events(Lock& lock, std::size_t most) {
  // Most messages come from the sender of the one before: the reference to it goes round.
  EndPoint sender = std::exchange(last_sender_, EndPoint());
  const EndPoint nobody;
  BufferState::Calling calling(told_);
  const bool is_thread = is_thread_delivering();
  std::size_t told = 0;
  lock.unlock();
  // stop() hands synchronous delivery over to the event thread, between two events.
  while (told < most && next_taken_ != end_taken_ && is_thread == is_thread_delivering()) {
    const engine::Completion& completion = taken_[next_taken_++];
    BufferState& buffer = BufferState::of(completion.cookie);
    const bool is_ok = completion.status == Status::ok;
    const bool is_message = is_ok && buffer.kind == QueueKind::message_receive;
    if (is_message && (!sender || EndPointState::of(sender)->remote != completion.source)) [[unlikely]] {
      lock.lock();
      sender = end_points_.find_or_make(completion.source);
      lock.unlock();
    }
    Loan loan;  // given back after the callback, unless that has moved it out
    if (completion.is_loan) [[unlikely]]
      loan = take_loan(completion.offset);
    const BufferEvent event{.buffer = *buffer.face,
                            .queue = buffer.kind,
                            .status = completion.status,
                            .is_final = completion.is_final,
                            .length = is_ok && is_receive(buffer.kind) ? completion.length : 0,
                            .offset = is_message && !completion.is_loan ? completion.offset : 0,
                            .time = to_public(completion.time_ns),
                            .sender = is_message ? sender : nobody,
                            .loan = completion.is_loan ? &loan : nullptr};
    calling.begin(buffer, event.is_final);
    if (event.is_final) {  // from here on the buffer is the application's
      buffer.machine.store(nullptr, std::memory_order_relaxed);
      buffer.phase.store(BufferState::Phase::free, std::memory_order_release);
    }
    call_back(buffer, event);
    calling.end();
    ++told;
  }
  lock.lock();
  if (sender) last_sender_ = std::move(sender);
  return told;
}

Loan Machine::take_loan(std::uint64_t name) {
  auto [bytes, memory] = core_->loan(name);
  return {bytes, std::move(memory), shared_from_this(), name};
}

void Machine::give_back(std::uint64_t name) {
  const Lock lock(mutex_);
  if (core_) core_->give_back(port_, name);
}

void Loan::end() noexcept {
  if (!machine_->is_inherited()) machine_->give_back(name_);
  machine_.reset();
  memory_.reset();
  bytes_ = {};
}

// The next events, if there are any; the caller has the turn.
std::size_t Machine::deliver(Lock& lock, std::size_t most) {
  if (next_taken_ == end_taken_ && !take_events(most, Look::queue)) return 0;
  return tell_events(lock, most);
}

void Machine::end_turn() {
  turn_ = std::thread::id();
  tell_changed();
  // The event thread waits for the turn only when it is about to stop.
  if (state_.load(std::memory_order_relaxed) != MachineState::started) wake_thread();
}

// The turn must be free.
std::size_t Machine::deliver_some(Lock& lock, std::size_t budget) {
  take_turn();
  const bool is_thread = is_thread_delivering();
  std::size_t delivered = 0;
  while (delivered < budget && is_thread == is_thread_delivering()) {
    const std::size_t more = deliver(lock, budget - delivered);
    delivered += more;
    if (more == 0 || (next_taken_ == end_taken_ && end_taken_ < kTakenMax)) break;  // there were no more
  }
  end_turn();
  return delivered;
}

// Synchronous delivery ----------------------------------------------------------------------------------------------

std::expected<std::size_t, Status> Machine::deliver_all(std::size_t budget) {
  std::shared_ptr<Machine> self;  // from a callback that destroyed the handle, until the lock is open
  Lock lock(mutex_);
  if (state() != MachineState::started || is_automatic_) return std::unexpected(Status::bad_state);
  if (!is_turn_free()) return 0;
  if (next_taken_ == end_taken_) {
    if (!take_events(budget, Look::pass)) return 0;
  } else {
    core_->progress();
  }
  is_in_deliver_all_ = true;
  const std::size_t delivered = deliver_some(lock, budget);
  is_in_deliver_all_ = false;
  if (kept_by_delivery_) [[unlikely]]
    self = std::move(kept_by_delivery_);
  return delivered;
}

bool Machine::pending() {
  const Lock lock(mutex_);
  if (state() != MachineState::started || is_automatic_) return false;
  core_->progress();
  return is_turn_free() ? has_event() : core_->has_event(port_);
}

std::expected<bool, Status> Machine::wait(Instant deadline) {
  Lock lock(mutex_);
  if (state() != MachineState::started || is_automatic_ || waiter_ != Waiter::nobody) {
    return std::unexpected(Status::bad_state);
  }
  waiter_ = Waiter::application;  // until then the machine does not stop
  lock.unlock();
  core_->wait(port_, to_engine(deadline));
  lock.lock();
  waiter_ = Waiter::nobody;
  const bool has_event = core_->has_event(port_);
  if (state() == MachineState::started && !signal_) return has_event;
  thread_wake_.notify_one();  // it waits for its own turn in the Core
  return has_event && state() == MachineState::started;
}

Status Machine::notify(std::function<void()> signal) {
  const Lock lock(mutex_);
  if (state() != MachineState::started || is_automatic_) return Status::bad_state;
  signal_ = std::move(signal);
  wake_thread();
  return Status::ok;
}

// Destruction of a queued buffer ------------------------------------------------------------------------------------

// In a callback of this machine nobody else can deliver the final event, so it is delivered from here, inside that
// callback. Likewise when delivery is synchronous and nobody is at it.
void Machine::finish(BufferState& buffer) {
  Lock lock(mutex_);
  if (buffer.machine.load(std::memory_order_relaxed) != this) return;
  end_early(buffer, BufferState::Ender::owner);
  while (buffer.machine.load(std::memory_order_relaxed) == this) {
    const bool has_turn = turn_ == std::this_thread::get_id();
    const bool may_take_turn = is_turn_free() && (!is_thread_delivering() || is_inside());
    if (!has_turn && !may_take_turn) {
      wait_for_change(lock, kFinishStep);  // nobody tells between two events that were taken together
      continue;
    }
    if (!has_turn) take_turn();
    if (deliver(lock, 1) == 0) {
      const bool may_wait = waiter_ == Waiter::nobody;
      if (may_wait) waiter_ = Waiter::application;
      lock.unlock();
      may_wait ? core_->wait(port_, to_engine(domain_->time() + kFinishStep)) : core_->progress();
      lock.lock();
      if (may_wait) waiter_ = Waiter::nobody;
    }
    if (!has_turn) end_turn();
  }
}

}  // namespace fairlead::net
