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
  const BufferState::Calling calling(buffer, event.is_final);
  buffer.callbacks[std::to_underlying(event.queue)](event);
}

}  // namespace

// Delivers the next event, if there is one. The lock is open during the callback.
bool Machine::deliver_one(Lock& lock) {
  engine::Completion completion;
  if (!core_->next_event(port_, completion)) return false;
  BufferState& buffer = BufferState::of(completion.cookie);
  ENSURE(buffer.machine.load(std::memory_order_relaxed) == this, "an event for a buffer that is not queued here");

  const bool is_ok = completion.status == Status::ok;
  const bool is_message = buffer.kind == QueueKind::message_receive;
  // Most messages come from the sender of the one before: the reference to it goes round.
  EndPoint sender;
  if (is_ok && is_message) {
    sender = std::exchange(last_sender_, EndPoint());
    if (!sender || EndPointState::of(sender)->remote != completion.source)
      sender = end_points_.find_or_make(completion.source);
  }
  const BufferEvent event{.buffer = *buffer.face,
                          .queue = buffer.kind,
                          .status = status_of(completion, buffer.ender),
                          .is_final = completion.is_final,
                          .length = is_ok && is_receive(buffer.kind) ? completion.length : 0,
                          .offset = is_ok && is_message ? completion.offset : 0,
                          .time = to_public(completion.time_ns),
                          .sender = sender};
  note(buffer, event);
  if (event.is_final) unlink(buffer);  // its reference passes to the call
  lock.unlock();
  call_back(buffer, event);
  lock.lock();
  if (sender) last_sender_ = std::move(sender);
  return true;
}

void Machine::note(const BufferState& buffer, const BufferEvent& event) {
  QueueStatistics& queue = statistics_.queues[std::to_underlying(buffer.kind)];
  if (event.is_final) queue.time_in_queue += event.time - buffer.added;
  if (event.status != Status::ok) {
    ++queue.failures;
    return;
  }
  ++queue.successes;
  const std::uint64_t bytes = is_receive(buffer.kind) ? event.length : buffer.length;
  queue.bytes_total += bytes;
  queue.bytes_max = std::max(queue.bytes_max, bytes);
}

// From here on the buffer is the application's.
void Machine::unlink(BufferState& buffer) {
  queued_.erase(queued_.iterator_to(buffer));
  deadlines_.remove(buffer);
  core_->release_events(port_, buffer.events);
  buffer.machine.store(nullptr, std::memory_order_relaxed);
  buffer.phase.store(BufferState::Phase::free, std::memory_order_release);
  if (finishers_ != 0) changed_.notify_all();
}

void Machine::end_turn() {
  turn_ = std::thread::id();
  changed_.notify_all();
  // The event thread waits for the turn only when it is about to stop.
  if (state_.load(std::memory_order_relaxed) != MachineState::started) thread_wake_.notify_one();
}

// The turn must be free.
std::size_t Machine::deliver_some(Lock& lock, std::size_t budget) {
  take_turn();
  const bool is_thread = is_thread_delivering();
  std::size_t delivered = 0;
  // stop() hands synchronous delivery over to the event thread, between two events.
  while (delivered < budget && is_thread == is_thread_delivering() && deliver_one(lock)) ++delivered;
  end_turn();
  return delivered;
}

// Synchronous delivery ----------------------------------------------------------------------------------------------

std::expected<std::size_t, Status> Machine::deliver_all(std::size_t budget) {
  std::shared_ptr<Machine> self;  // from a callback that destroyed the handle, until the lock is open
  Lock lock(mutex_);
  if (state() != MachineState::started || is_automatic_) return std::unexpected(Status::bad_state);
  if (!is_turn_free()) return 0;
  core_->progress();
  if (!core_->has_event(port_)) return 0;
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
  return core_->has_event(port_);
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
  ++finishers_;
  while (buffer.machine.load(std::memory_order_relaxed) == this) {
    const bool has_turn = turn_ == std::this_thread::get_id();
    const bool may_take_turn = is_turn_free() && (!is_thread_delivering() || is_inside());
    if (!has_turn && !may_take_turn) {
      wait_for_change(lock);
      continue;
    }
    if (!has_turn) take_turn();
    if (!deliver_one(lock)) {
      const bool may_wait = waiter_ == Waiter::nobody;
      if (may_wait) waiter_ = Waiter::application;
      lock.unlock();
      may_wait ? core_->wait(port_, to_engine(domain_->time() + kFinishStep)) : core_->progress();
      lock.lock();
      if (may_wait) waiter_ = Waiter::nobody;
    }
    if (!has_turn) end_turn();
  }
  --finishers_;
}

}  // namespace fairlead::net
