// The event thread of a machine: starts the port, delivers events, enforces deadlines, and stops the port.

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/affinity.hpp"
#include "base/numa.hpp"
#include "base/short_slice.hpp"
#include "net/clock.hpp"
#include "net/machine.hpp"
#include "net/refused.hpp"

namespace fairlead::net {
namespace {

constexpr std::size_t kEventsInBatch = 64;  // between two checks of deadlines and drops
constexpr Duration kAbandonTurn = std::chrono::milliseconds(1);

}  // namespace

void Machine::run() {
  base::ask_for_short_slice();  // a deadline is then told in time beside threads that compute
  Lock lock(mutex_);
  if (!begin(lock)) return;
  while (!serve(lock)) rest(lock);
  take_down(lock);
}

Instant Machine::step() {
  const std::shared_ptr<Machine> self = shared_from_this();
  Lock lock(mutex_);
  if (!turn_.is_free()) return kNever;  // a callback further up the stack must finish first
  if (state() == MachineState::starting) {
    if (!begin(lock)) kept_.reset();
  } else if (state() == MachineState::started || state() == MachineState::stopping) {
    if (!serve(lock)) return next_look();
    take_down(lock);
    kept_.reset();
  }
  return kNever;
}

/// Goes from starting to started; returns false if that failed.
bool Machine::begin(Lock& lock) {
  lock.unlock();
  auto up = bring_up(wanted_);
  lock.lock();
  if (!up) {
    failure_ = std::move(up.error());
    set_state(MachineState::failed);
    tell(lock, MachineEvent::Kind::state_change, failure_.status, MachineState::failed, failure_.message);
  } else {
    set_state(MachineState::started);
    if (provision_.is_attached()) provision_.fill(port_);
    tell(lock, MachineEvent::Kind::state_change, Status::ok, MachineState::started, {});
    if (!ignored_.empty()) tell(lock, MachineEvent::Kind::diagnostic, Status::ok, MachineState::undefined, ignored_);
  }
  has_told_start_ = true;
  changes_.tell();
  if (up && must_stop_ && state() == MachineState::started) begin_stop(stop_mode_);
  end_stop(lock);  // of a stop that came meanwhile or from the callback
  return up.has_value();
}

// The state is still `starting`, so lack of memory fails the start.
Result<> Machine::bring_up(const NetAddress& wanted) try {
  if (!is_driven_by_calls() && !cpus_.empty() && !base::confine_to_cpus(cpus_)) {
    return refused(Status::not_available,
                   fmt::format("cannot run on CPUs {}: this process may not use all of them", fmt::join(cpus_, ",")));
  }
  if (provision_.is_attached()) provision_.pool()->place_near(base::near_node());
  auto opened = MachinePort::open(*domain_, wanted);
  if (!opened) return std::unexpected(std::move(opened.error()));
  const Lock lock(mutex_);
  ignored_ = std::move(opened->ignored);
  if (auto allocate = opened->core->allocate_shared()) domain_->set_allocate_shared(std::move(allocate));
  port_.settle(std::move(*opened));
  losses_.begin(*port_.core, port_.handle);
  figures_.begin(domain_->time());
  if (is_driven_by_calls()) armed_ = Instant::min();
  return {};
} catch (const std::bad_alloc&) {
  return refused(Status::no_memory, "no memory");
}

/// Serves the machine once. Returns true if all work is done and the port may be closed.
bool Machine::serve(Lock& lock) {
  if (abandoning_ != 0) changes_.wait(lock, kAbandonTurn);  // lets callbacks that wait in abandon() go first
  if (is_thread_delivering() && turn_.is_free() && has_event()) deliver_some(lock, kEventsInBatch);
  if (signal_ && port_.core->has_event(port_.handle)) signal_pending(lock);
  queues_.expire();
  report_news(lock);
  if (figures_.next() != kNever) report_statistics(lock);
  return may_close();
}

bool Machine::is_empty_at_end() {
  return state() == MachineState::stopping && port_.core && provision_.is_home(port_) && queues_.are_empty();
}

bool Machine::may_close() {
  return is_empty_at_end() && turn_.is_free() && taken_.is_empty() && waiter_ == Waiter::nobody;
}

// Sleeps until there may be work.
void Machine::rest(Lock& lock) {
  const Instant time = !queues_.has_deadlines() && armed_ == kNever ? Instant() : domain_->time();
  if (armed_ <= time) armed_ = kNever;
  armed_ = std::min(armed_, next_look());
  const bool listens = (is_thread_delivering() && turn_.is_free()) || signal_;
  if (listens && waiter_ == Waiter::nobody) {
    waiter_ = Waiter::event_thread;
    lock.unlock();
    port_.core->wait(port_.handle, to_engine(armed_));
    lock.lock();
    waiter_ = Waiter::nobody;
  } else if (armed_ == kNever) {
    thread_wake_.wait(lock);
  } else {
    thread_wake_.wait_until(lock, armed_);
  }
}

// Call under the lock after every change that a sleeping thread must see.
void Machine::wake_sleeper() {
  thread_wake_.notify_one();
  const bool is_driven = is_driven_by_calls();
  if (waiter_ == Waiter::event_thread || (waiter_ == Waiter::application && is_driven))
    port_.core->interrupt(port_.handle);
  if (calls_.was_armed() && is_driven) calls_.wake_by(armed_ = next_look());
}

void Machine::signal_pending(Lock& lock) {
  const std::function<void()> signal = std::exchange(signal_, nullptr);
  lock.unlock();
  [&]() noexcept { signal(); }();
  lock.lock();
}

bool Machine::has_news() {
  if (port_.core->has_ended() && !has_told_end_of_engine_) return true;
  return losses_.has_more() || drops_.is_due(*port_.core, port_.handle, *domain_);
}

// Reports drops and lost peers as events. The engine only counts drops and lists lost peers.
void Machine::report_news(Lock& lock) {
  if (const std::uint64_t more = drops_.take(*port_.core, port_.handle, *domain_); more > 0) {
    const std::string text = fmt::format(
        "{} messages to {} were dropped, no queued buffer could take them: queue more or larger receive buffers", more,
        port_.own.address());
    tell(lock, MachineEvent::Kind::error, Status::no_buffer, MachineState::undefined, text);
  }
  if (port_.core && port_.core->has_ended() && !std::exchange(has_told_end_of_engine_, true)) {
    tell(lock, MachineEvent::Kind::error, Status::restarted, MachineState::undefined,
         "the host engine has ended, and with it what was queued: start fairleadd, then stop and start this machine");
  }
  engine::PeerLoss loss;
  while (port_.core && losses_.next(loss)) {
    if (!port_.end_points.has_engine(loss.engine)) continue;
    const std::string known = port_.core->describe_peer(loss.engine);
    const std::string peer = fmt::format("{}:{}", nid_text(loss.engine), loss.engine.port);
    tell(lock, MachineEvent::Kind::peer_gone, loss.status, MachineState::undefined, known, peer);
  }
}

void Machine::report_statistics(Lock& lock) {
  if (!figures_.is_due(domain_->time())) return;
  const std::string text = fmt::format("machine={} dropped={} {}", port_.own.address(), port_.dropped(),
                                       to_record(queues_.statistics(false)));
  tell(lock, MachineEvent::Kind::statistics, Status::ok, MachineState::undefined, text);
}

// All buffers are back. By the time `stopped` is reported, the address is free.
void Machine::take_down(Lock& lock) {
  port_.dropped_at_end = port_.dropped();
  std::shared_ptr<engine::Core> core = std::move(port_.core);
  std::shared_ptr<PoolState> pool = provision_.end();
  losses_.end();
  calls_.close();
  lock.unlock();
  pool.reset();
  core->close_port(port_.handle);
  core.reset();
  lock.lock();
  set_state(MachineState::stopped);
  tell(lock, MachineEvent::Kind::state_change, Status::ok, MachineState::stopped, {});
}

}  // namespace fairlead::net
