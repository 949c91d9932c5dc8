#include "net/machine_calls.hpp"

#include <optional>
#include <utility>

#include "base/affinity.hpp"
#include "net/clock.hpp"
#include "net/machine.hpp"

namespace fairlead::net {
namespace {

constexpr std::size_t kEventsInPass = 64;
constexpr Duration kDriveStep = std::chrono::milliseconds(10);
// A call that delivers events checks for other due work only once per so many calls. A call that finds no event checks
// every time.
constexpr std::uint32_t kLookEvery = 32;

}  // namespace

std::shared_ptr<Machine> MachineCalls::end_of_call(Lock& lock) {
  return machine_.kept_ ? end_kept(lock) : nullptr;
}

bool MachineCalls::is_deliverable() const {
  const MachineState now = machine_.state();
  if (machine_.is_automatic_ || !machine_.port_.core) return false;
  return now == MachineState::started || (now == MachineState::stopping && !machine_.domain_->simulation);
}

/// Does the event thread's work other than buffer events. May call back, and may complete a stop.
void MachineCalls::look_after(Lock& lock) {
  if (!machine_.is_driven_by_calls() || !machine_.port_.core) return;
  deliveries_ = 0;
  machine_.queues_.expire();
  if (!machine_.turn_.is_free()) return;
  if (machine_.has_news()) machine_.report_news(lock);
  if (machine_.figures_.next() != kNever && machine_.port_.core) machine_.report_statistics(lock);
  machine_.end_stop(lock);
}

// Events to the application ------------------------------------------------------------------------------------------

std::expected<std::size_t, Status> MachineCalls::deliver_all(std::size_t budget) {
  // Keeps the machine alive until the lock is released, if a callback destroyed the handle.
  std::shared_ptr<Machine> self;
  Lock lock(machine_.mutex_);
  if (!is_deliverable()) return std::unexpected(Status::bad_state);
  if (!machine_.turn_.is_free()) return 0;
  if (machine_.queues_.has_deadlines() && machine_.is_driven_by_calls()) machine_.queues_.expire();
  std::size_t delivered = 0;
  if (!machine_.taken_.is_empty()) {
    machine_.port_.core->progress();
    delivered = machine_.deliver_some(lock, budget);
  } else if (machine_.take_events(budget, Machine::Look::pass)) {
    delivered = machine_.deliver_some(lock, budget);
  }
  if (delivered == 0 || ++deliveries_ >= kLookEvery || machine_.state() != MachineState::started) look_after(lock);
  self = end_of_call(lock);
  return delivered;
}

bool MachineCalls::pending() {
  std::shared_ptr<Machine> self;
  Lock lock(machine_.mutex_);
  if (!is_deliverable()) return false;
  machine_.port_.core->progress();
  look_after(lock);
  self = end_of_call(lock);
  if (!is_deliverable()) return false;
  return machine_.turn_.is_free() ? machine_.has_event() : machine_.port_.core->has_event(machine_.port_.handle);
}

std::expected<bool, Status> MachineCalls::wait(Instant deadline) {
  std::shared_ptr<Machine> self;
  Lock lock(machine_.mutex_);
  if (!is_deliverable() || machine_.waiter_ != Machine::Waiter::nobody) return std::unexpected(Status::bad_state);
  const MachineState before = machine_.state();
  machine_.waiter_ = Machine::Waiter::application;  // the machine does not stop while this is set
  bool has_event = false, goes_on = true;
  while (goes_on) {
    look_after(lock);
    const Instant until = machine_.is_driven_by_calls() ? std::min(deadline, machine_.next_look()) : deadline;
    if (machine_.is_driven_by_calls()) machine_.armed_ = until;
    lock.unlock();
    machine_.port_.core->wait(machine_.port_.handle, to_engine(until));
    lock.lock();
    has_event = machine_.port_.core->has_event(machine_.port_.handle);
    // Without an event, the wait was interrupted for other news, which does not concern the caller.
    goes_on = !has_event && machine_.state() == before && !machine_.signal_ && !machine_.is_empty_at_end() &&
              !machine_.domain_->simulation && machine_.domain_->time() < deadline;
  }
  machine_.waiter_ = Machine::Waiter::nobody;
  if (machine_.is_driven_by_calls()) machine_.armed_ = Instant::min();
  look_after(lock);
  machine_.thread_wake_.notify_one();  // the thread of notify() waits for access to the Core
  self = end_of_call(lock);
  return has_event && is_deliverable();
}

// For the program's own event loop -----------------------------------------------------------------------------------

std::expected<bool, Status> MachineCalls::arm() {
  std::shared_ptr<Machine> self;
  Lock lock(machine_.mutex_);
  const auto is_usable = [&] {
    return is_deliverable() && !machine_.signal_ && machine_.waiter_ == Machine::Waiter::nobody;
  };
  if (is_usable()) look_after(lock);
  self = end_of_call(lock);
  if (!is_usable()) return std::unexpected(Status::bad_state);
  was_armed_ = true;
  if (!machine_.taken_.is_empty() || !machine_.port_.core->arm_descriptor(machine_.port_.handle)) return false;
  if (machine_.is_driven_by_calls()) descriptor_.set(machine_.armed_ = machine_.next_look());
  return true;
}

int MachineCalls::descriptor() {
  const Lock lock(machine_.mutex_);
  if (!machine_.port_.core || machine_.is_automatic_) return -1;
  const int events = machine_.port_.core->descriptor(machine_.port_.handle);
  if (!machine_.is_driven_by_calls()) return events;
  const int both = descriptor_.open(events);
  if (was_armed_) descriptor_.set(machine_.armed_ = machine_.next_look());
  return both;
}

Status MachineCalls::notify(std::function<void()> signal) {
  const Lock lock(machine_.mutex_);
  if (!is_deliverable()) return Status::bad_state;
  if (machine_.is_driven_by_calls() && !machine_.thread_.is_joinable()) {
    auto thread = base::Thread::start([self = machine_.shared_from_this()] { self->calls_.run_signals(); });
    if (!thread) return thread.error().status;
    machine_.thread_ = std::move(*thread);
  }
  machine_.signal_ = std::move(signal);
  machine_.wake_sleeper();
  return Status::ok;
}

// Runs on the thread of notify(). It waits in the application's place, and delivers no buffer events.
void MachineCalls::run_signals() {
  if (!machine_.cpus_.empty()) static_cast<void>(base::confine_to_cpus(machine_.cpus_));
  std::shared_ptr<Machine> self;
  Lock lock(machine_.mutex_);
  while (!machine_.has_ended()) {
    if (!machine_.signal_) {
      machine_.thread_wake_.wait(lock);
      continue;
    }
    look_after(lock);
    self = end_of_call(lock);
    if (!machine_.port_.core) {  // the thread with the turn is ending the machine
      if (!machine_.has_ended()) machine_.thread_wake_.wait(lock);
      continue;
    }
    const bool is_pending =
        machine_.turn_.is_free() ? machine_.has_event() : machine_.port_.core->has_event(machine_.port_.handle);
    if (is_pending) {
      machine_.signal_pending(lock);
      self = end_of_call(lock);
    } else if (machine_.waiter_ == Machine::Waiter::nobody) {
      machine_.waiter_ = Machine::Waiter::event_thread;
      machine_.armed_ = machine_.next_look();
      lock.unlock();
      machine_.port_.core->wait(machine_.port_.handle, to_engine(machine_.armed_));
      lock.lock();
      machine_.waiter_ = Machine::Waiter::nobody;
      machine_.armed_ = Instant::min();
      machine_.changes_.tell();
    } else {
      machine_.thread_wake_.wait(lock);
    }
  }
}

// The end ------------------------------------------------------------------------------------------------------------

void MachineCalls::drive_to_end(Lock& lock) {
  const bool is_driven = machine_.is_driven_by_calls();
  while (!(machine_.has_ended() && machine_.turn_.is_free())) {
    const bool is_mine = is_driven && machine_.state() == MachineState::stopping && machine_.turn_.is_free() &&
                         machine_.port_.core && machine_.waiter_ == Machine::Waiter::nobody &&
                         machine_.abandoning_ == 0;
    if (!is_mine) {
      is_driven ? machine_.changes_.wait(lock, kDriveStep) : machine_.changes_.wait(lock);
      continue;
    }
    if (machine_.has_event()) machine_.deliver_some(lock, kEventsInPass);
    look_after(lock);
    if (machine_.state() != MachineState::stopping || !machine_.turn_.is_free() || !machine_.port_.core ||
        machine_.waiter_ != Machine::Waiter::nobody || machine_.has_event())
      continue;
    machine_.waiter_ = Machine::Waiter::application;
    lock.unlock();
    machine_.port_.core->wait(machine_.port_.handle,
                              to_engine(std::min(machine_.next_look(), machine_.domain_->time() + kDriveStep)));
    lock.lock();
    machine_.waiter_ = Machine::Waiter::nobody;
  }
}

void MachineCalls::close() {
  was_armed_ = false;
  descriptor_.set(Instant::min());
}

[[gnu::noinline]] std::shared_ptr<Machine> MachineCalls::end_kept(Lock& lock) {
  if (!machine_.is_driven_by_calls() || machine_.turn_.is_mine()) return nullptr;
  std::shared_ptr<Machine> self = std::exchange(machine_.kept_, nullptr);
  drive_to_end(lock);
  return self;
}

}  // namespace fairlead::net
