// Moves events from the Core to the callbacks, on the thread that has the turn.

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/ensure.hpp"
#include "net/clock.hpp"
#include "net/machine.hpp"

namespace fairlead::net {
namespace {

constexpr auto kFinishStep = std::chrono::milliseconds(10);
constexpr auto kAbandonStep = std::chrono::microseconds(50);

// An exception from a callback has no handler: noexcept terminates the process, as documented.
void call_back(const BufferCallback& callback, const BufferEvent& event) noexcept {
  callback(event);
}

bool is_message(const engine::Completion& completion) {
  return completion.status == Status::ok && BufferState::of(completion.cookie).kind == QueueKind::message_receive;
}

}  // namespace

// Takes the next batch of events from the Core and updates the books for them. All previous events are delivered.
bool Machine::take_events(std::size_t most, Look look) {
  engine::Core& core = *port_.core;
  const std::span to = taken_.room(most);
  const std::size_t count = look == Look::pass ? core.poll(port_.handle, to) : core.next_events(port_.handle, to);
  OperationQueues::Released released;
  const std::span taken = taken_.fill(count);
  std::array<const engine::RemotePort*, TakenEvents::kMost> sources;
  for (std::size_t i = 0; i < count; ++i) {
    queues_.settle(taken[i], released);
    sources[i] = is_message(taken[i]) ? &taken[i].source : nullptr;
  }
  if (count > 0) port_.end_points.lend_senders(std::span(sources).first(count), taken_.senders());
  if (released.events > 0) core.release_events(port_.handle, released.events);
  if (released.spares > 0) core.grant_spares(port_.handle, released.spares);
  return count != 0;
}

// Delivers at most `most` of the taken events. Releases the lock meanwhile, so callbacks may reenter the machine.
std::size_t Machine::tell_events(Lock& lock, std::size_t most) {
  BufferState::Calling calling(turn_.told());
  const bool is_thread = is_thread_delivering();
  std::size_t told = 0;
  lock.unlock();
  if (provision_.is_attached()) provision_.pool()->look();
  // In a simulation, stop() between two events hands synchronous delivery to the simulation.
  while (told < most && !taken_.is_empty() && is_thread == is_thread_delivering()) {
    const engine::Completion& completion = taken_.next();
    BufferState& buffer = BufferState::of(completion.cookie);
    const bool is_ok = completion.status == Status::ok;
    const bool has_place = is_message(completion) && !completion.is_loan;
    const LentEndPoint sender(taken_.sender());
    const bool has_handle = buffer.face != nullptr;
    BufferState::StandIn stand_in;
    Buffer& face = has_handle ? *buffer.face : stand_in.of(buffer);
    std::optional<Loan> loan;  // given back after the callback, unless the callback moved it out
    if (completion.is_loan) [[unlikely]]
      loan.emplace(take_loan(completion.offset));
    const BufferEvent event{.buffer = face,
                            .queue = buffer.kind,
                            .status = completion.status,
                            .is_final = completion.is_final,
                            .length = is_ok && is_receive(buffer.kind) ? completion.length : 0,
                            .offset = has_place ? completion.offset : 0,
                            .time = to_public(completion.time_ns),
                            .sender = sender.get(),
                            .machine = face_,
                            .loan = loan ? &*loan : nullptr};
    const bool is_provided = buffer.events == 0;
    const BufferCallback& callback =
        is_provided ? provision_.callback() : buffer.callbacks[std::to_underlying(event.queue)];
    // A buffer that the engine took from the pool goes to the application with its last message, whose status is ok.
    const bool goes_back = is_provided && event.is_final && !is_ok;
    calling.begin(buffer, event.is_final);
    if (event.is_final) {  // from here on the application or the pool owns the buffer
      buffer.machine.store(nullptr, std::memory_order_relaxed);
      buffer.phase.store(goes_back ? BufferState::Phase::pooled : BufferState::Phase::free, std::memory_order_release);
    }
    const bool is_end = event.is_final && !has_handle;
    PooledBuffer* const pooled = goes_back ? buffer.pooled : nullptr;
    call_back(callback, event);
    calling.end();
    if (pooled != nullptr) [[unlikely]]
      pooled->pool->take_back(*pooled, kAnyColour);
    if (is_end) [[unlikely]]
      buffer.end_without_handle();
    ++told;
  }
  lock.lock();
  if (taken_.is_empty()) port_.end_points.release_senders();
  return told;
}

Loan Machine::take_loan(std::uint64_t name) {
  auto [bytes, memory] = port_.core->loan(name);
  return {bytes, std::move(memory), shared_from_this(), name};
}

void Loan::end() noexcept {
  const auto give_back = [&](const MachinePort& port) {
    if (port.core) port.core->give_back(port.handle, name_);
  };
  if (!machine_->is_inherited()) machine_->ask(give_back);
  machine_.reset();
  memory_.reset();
  bytes_ = {};
}

// Delivers the next events, if there are any. The caller holds the turn.
std::size_t Machine::deliver(Lock& lock, std::size_t most) {
  if (taken_.is_empty() && !take_events(most, Look::queue)) return 0;
  return tell_events(lock, most);
}

void Machine::end_turn() {
  turn_.end();
  // Other threads wait for the turn only when the machine is about to stop.
  if (state_.load(std::memory_order_relaxed) != MachineState::started) wake_sleeper();
}

// The turn must be free.
std::size_t Machine::deliver_some(Lock& lock, std::size_t budget) {
  turn_.take();
  const bool is_thread = is_thread_delivering();
  std::size_t delivered = 0;
  while (delivered < budget && is_thread == is_thread_delivering() && abandoning_ == 0) {
    const std::size_t more = deliver(lock, budget - delivered);
    delivered += more;
    if (more == 0 || (taken_.is_empty() && !taken_.was_full())) break;  // the Core has no more
  }
  end_turn();
  return delivered;
}

// Destruction of a queued buffer ------------------------------------------------------------------------------------

// With synchronous delivery, this call delivers the final event itself if no other thread does.
void Machine::finish(BufferState& buffer) {
  std::shared_ptr<Machine> self;  // keeps the machine alive until the lock is released
  Lock lock(mutex_);
  if (buffer.machine.load(std::memory_order_relaxed) != this) return;
  queues_.end_early(buffer, BufferState::Ender::owner);
  while (buffer.machine.load(std::memory_order_relaxed) == this) {
    if (!turn_.is_free() || (is_thread_delivering() && !thread_.is_this())) {
      // The delivering thread does not notify between two events of one batch, so the wait has a timeout.
      changes_.wait(lock, kFinishStep);
      continue;
    }
    turn_.take();
    if (deliver(lock, 1) == 0) {
      const bool may_wait = waiter_ == Waiter::nobody;
      if (may_wait) waiter_ = Waiter::application;
      lock.unlock();
      may_wait ? port_.core->wait(port_.handle, to_engine(domain_->time() + kFinishStep)) : port_.core->progress();
      lock.lock();
      if (may_wait) waiter_ = Waiter::nobody;
    }
    end_turn();
  }
  end_stop(lock);  // of a stop that a callback has begun
  self = calls_.end_of_call(lock);
}

bool Machine::abandon(BufferState& buffer) {
  Lock lock(mutex_);
  std::optional<Turn::Pause> paused;
  const auto pause = [&] {
    if (paused) return;
    lock.unlock();
    paused.emplace();
    lock.lock();
  };
  while (buffer.machine.load(std::memory_order_relaxed) == this && turn_.is_telling_elsewhere()) {
    pause();
    if (!turn_.is_telling_elsewhere()) continue;
    ++abandoning_;
    changes_.wait(lock, kFinishStep);
    --abandoning_;
    changes_.tell();
  }
  if (buffer.machine.load(std::memory_order_relaxed) != this) {
    lock.unlock();
    return false;
  }
  queues_.end_early(buffer, BufferState::Ender::owner);
  buffer.face = nullptr;
  // The caller gets its memory back when the engine no longer uses it. The buffer may be gone by then.
  const std::shared_ptr<engine::Core> core = port_.core;
  const auto port = port_.handle;
  const engine::OperationHandle operation = buffer.operation;
  while (core->cancel(port, operation)) {
    pause();
    lock.unlock();
    if (domain_->simulation) {
      domain_->simulation->pass_time();
    } else if (!core->progress()) {
      std::this_thread::sleep_for(kAbandonStep);
    }
    lock.lock();
  }
  lock.unlock();
  return true;
}

}  // namespace fairlead::net
