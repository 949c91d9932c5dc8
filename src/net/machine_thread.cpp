// What the event thread of a machine does: it starts the port, delivers events, keeps deadlines, and stops the port.

#include <fairlead/net/address.hpp>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/affinity.hpp"
#include "net/clock.hpp"
#include "net/machine.hpp"
#include "net/refused.hpp"

namespace fairlead::net {
namespace {

constexpr std::size_t kEventsInBatch = 64;  // between two looks at deadlines and drops
constexpr Duration kAbandonTurn = std::chrono::milliseconds(1);
constexpr Duration kDropsEvery = std::chrono::milliseconds(5);

Result<std::shared_ptr<engine::Core>> attach(DomainState& domain, base::SocketAddress local) {
  // Inside the process there is no range of ports to search: `*` is the first one.
  const auto first = static_cast<std::uint16_t>(domain.options.get(engine::Option::port_first));
  if (is_lo(local) && local.port == 0) local.port = first;
  auto core = domain.attach(local, domain.options);
  if (!core && core.error().system_errno == EADDRNOTAVAIL) {
    core.error().status = Status::not_available;
    core.error().message =
        fmt::format("address not local: this host has {}, but not {}",
                    fmt::join(local_nids().value_or(std::vector<std::string>()), ", "), nid_text(local));
  }
  return core;
}

Result<engine::PortHandle> open_port(engine::Core& core, NetAddress& address) {
  const std::string where = fmt::format("{}:{}:{}", nid_text(core.address()), core.address().port, address.portal);
  if (address.tmid == 0) {
    std::uint32_t number = 0;
    auto port = core.open_port_dynamic(address.portal << kTmidBits | 1, kTmidMax, number);
    if (!port && port.error().status == Status::not_available) {
      port.error().message = fmt::format("no tmid of {} is free: all {} are in use", where, kTmidMax);
    }
    address.tmid = number & kTmidMax;
    return port;
  }
  auto port = core.open_port(address.port());
  if (!port && port.error().status == Status::in_use) {
    port.error().message =
        fmt::format("{}:{} is in use: take another tmid, or `*` for a free one", where, address.tmid);
  }
  return port;
}

/// Whoever attaches first decides: all others share its engine.
std::string ignored_settings(const engine::Core& core, const engine::EngineOptions& wanted) {
  const auto differences =
      core.options() != nullptr ? core.options()->differences(wanted) : std::vector<std::string_view>();
  if (differences.empty()) return {};
  return fmt::format(
      "the engine at {} was started before with other settings, and these of this domain mean nothing: {}; open both "
      "domains with the same ones, or take another pid",
      core.address().to_string(), fmt::join(differences, ", "));
}

}  // namespace

void Machine::run() {
  Lock lock(mutex_);
  if (!begin(lock)) return;
  while (!serve(lock)) rest(lock);
  take_down(lock);
}

Instant Machine::step() {
  const std::shared_ptr<Machine> self = shared_from_this();
  Lock lock(mutex_);
  if (!is_turn_free()) return kNever;  // a callback further up the stack goes on first
  if (state() == MachineState::starting) {
    if (!begin(lock)) kept_.reset();
  } else if (state() == MachineState::started || state() == MachineState::stopping) {
    if (!serve(lock)) return std::min(deadlines_.earliest(), drops_at_);
    take_down(lock);
    kept_.reset();
  }
  return kNever;
}

/// From starting to started; false if that failed.
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
    tell(lock, MachineEvent::Kind::state_change, Status::ok, MachineState::started, {});
    if (!ignored_.empty()) tell(lock, MachineEvent::Kind::diagnostic, Status::ok, MachineState::undefined, ignored_);
  }
  has_told_start_ = true;
  tell_changed();
  if (up && must_stop_ && state() == MachineState::started) begin_stop(stop_mode_);
  return up.has_value();
}

// Everything that makes a start fail; the state is still `starting`.
Result<> Machine::bring_up(const NetAddress& wanted) {
  if (!cpus_.empty() && !base::confine_to_cpus(cpus_)) {
    return refused(Status::not_available,
                   fmt::format("cannot run on CPUs {}: this process may not use all of them", fmt::join(cpus_, ",")));
  }
  if (!wanted.has_good_portal()) {
    return refused(Status::invalid, fmt::format("portal {} is not in 1..{}", wanted.portal, kPortalMax));
  }
  auto core = attach(*domain_, wanted.engine);
  if (!core) return std::unexpected(std::move(core.error()));
  NetAddress address = wanted;
  address.engine = (*core)->address();
  const auto port = open_port(**core, address);
  if (!port) return std::unexpected(port.error());

  const Lock lock(mutex_);
  core_ = std::move(*core);
  ignored_ = ignored_settings(*core_, domain_->options);
  if (auto allocate = core_->allocate_shared()) domain_->set_allocate_shared(std::move(allocate));
  port_ = *port;
  core_->watch_drops(port_);
  own_ = end_points_.find_or_make({address.engine, address.port()});
  return {};
}

/// One look at everything; true if all is done and the port may be closed.
bool Machine::serve(Lock& lock) {
  if (abandoning_ != 0) wait_for_change(lock, kAbandonTurn);  // theirs, before more is told
  if (is_thread_delivering() && is_turn_free() && has_event()) deliver_some(lock, kEventsInBatch);
  if (signal_ && core_->has_event(port_)) signal_pending(lock);
  expire_deadlines();
  report_drops(lock);
  const bool is_over = queued_.empty() && is_turn_free() && next_taken_ == end_taken_ && waiter_ == Waiter::nobody;
  return state() == MachineState::stopping && is_over;
}

// Sleeps until there may be something to do.
void Machine::rest(Lock& lock) {
  const Instant time = deadlines_.is_empty() && armed_ == kNever ? Instant() : domain_->time();
  if (armed_ <= time) armed_ = kNever;
  armed_ = std::min({armed_, deadlines_.earliest(), drops_at_});
  const bool listens = (is_thread_delivering() && is_turn_free()) || signal_;
  if (listens && waiter_ == Waiter::nobody) {
    waiter_ = Waiter::event_thread;
    lock.unlock();
    core_->wait(port_, to_engine(armed_));
    lock.lock();
    waiter_ = Waiter::nobody;
  } else if (armed_ == kNever) {
    thread_wake_.wait(lock);
  } else {
    thread_wake_.wait_until(lock, armed_);
  }
}

// Called after a change, under the lock, that rest() must not sleep through.
void Machine::wake_thread() {
  thread_wake_.notify_one();
  if (waiter_ == Waiter::event_thread) core_->interrupt(port_);
}

/// Of what changed_ tells.
void Machine::wait_for_change(Lock& lock, Duration at_most) {
  if (domain_->simulation) {
    lock.unlock();
    domain_->simulation->pass_time();
    lock.lock();
    return;
  }
  ++waiting_;
  at_most == Duration::max() ? changed_.wait(lock) : static_cast<void>(changed_.wait_for(lock, at_most));
  --waiting_;
}

void Machine::signal_pending(Lock& lock) {
  const std::function<void()> signal = std::exchange(signal_, nullptr);
  lock.unlock();
  [&]() noexcept { signal(); }();
  lock.lock();
}

void Machine::expire_deadlines() {
  if (deadlines_.is_empty()) return;
  const Instant time = domain_->time();
  while (BufferState* buffer = deadlines_.take_due(time)) end_early(*buffer, BufferState::Ender::deadline);
}

// The engine only counts messages that found no buffer; here they become an event, for all of some milliseconds.
void Machine::report_drops(Lock& lock) {
  if (drops_at_ != kNever) {
    if (domain_->time() < drops_at_) return;
    drops_at_ = kNever;
    core_->watch_drops(port_);
  }
  const std::uint64_t dropped = core_->dropped_no_buffer(port_);
  if (dropped == dropped_) return;
  drops_at_ = domain_->time() + kDropsEvery;
  const std::uint64_t more = dropped - std::exchange(dropped_, dropped);
  const std::string text = fmt::format(
      "{} messages to {} were dropped, no queued buffer could take them: queue more or larger receive buffers", more,
      own_.address());
  tell(lock, MachineEvent::Kind::error, Status::no_buffer, MachineState::undefined, text);
}

/// In a call of the application, which has made progress or waited in the thread's place.
void Machine::look_for_drops() {
  if (core_->dropped_no_buffer(port_) != dropped_) thread_wake_.notify_one();
}

// All buffers are back. When `stopped` is told, the address is free.
void Machine::take_down(Lock& lock) {
  dropped_ = core_->dropped_no_buffer(port_);
  std::shared_ptr<engine::Core> core = std::move(core_);
  lock.unlock();
  core->close_port(port_);
  core.reset();
  lock.lock();
  set_state(MachineState::stopped);
  tell(lock, MachineEvent::Kind::state_change, Status::ok, MachineState::stopped, {});
}

}  // namespace fairlead::net
