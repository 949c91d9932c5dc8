// A machine's states, from construction to close, and what can be asked of it meanwhile.

#include <random>
#include <utility>

#include <fmt/format.h>

#include "net/clock.hpp"
#include "net/machine.hpp"
#include "net/refused.hpp"

namespace fairlead::net {
namespace {

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

Machine::Machine(TransferMachine& face, std::shared_ptr<DomainState> domain, MachineCallback on_event)
    : domain_(std::move(domain)), on_event_(std::move(on_event)), face_(&face), end_points_(random_seed()) {}

void Machine::enroll() {
  if (!domain_ || !domain_->add_machine(shared_from_this())) set_state(MachineState::undefined);
}

Machine::~Machine() {
  if (domain_) domain_->remove_machine(this);
}

std::unexpected<Error> Machine::wrong_state(std::string_view action) const {
  return refused(Status::bad_state, fmt::format("cannot {} a transfer machine that is {}", action, to_string(state())));
}

// Whether the calling thread is in one of this machine's callbacks.
bool Machine::is_inside() const {
  return turn_ == std::this_thread::get_id() || thread_.is_this();
}

bool Machine::has_ended() const {
  const MachineState now = state();
  return now != MachineState::starting && now != MachineState::started && now != MachineState::stopping;
}

// Calls back about the machine itself, in turn. The state is already the new one.
void Machine::tell(Lock& lock, MachineEvent::Kind kind, Status status, MachineState next, std::string_view text) {
  while (!is_turn_free()) wait_for_change(lock);
  take_turn();
  if (on_event_ && face_ != nullptr) {
    const EndPoint own = next == MachineState::started ? own_ : EndPoint();
    const MachineEvent event{.kind = kind,
                             .machine = *face_,
                             .time = domain_->time(),
                             .status = status,
                             .next_state = next,
                             .end_point = own,
                             .text = text};
    lock.unlock();
    [&]() noexcept { on_event_(event); }();
    lock.lock();
  }
  end_turn();
}

Result<> Machine::confine(std::span<const unsigned> cpus) {
  const Lock lock(mutex_);
  if (state() != MachineState::initialized) return wrong_state("confine");
  if (cpus.empty()) return refused(Status::invalid, "a confinement to no CPU: name at least one");
  cpus_.assign(cpus.begin(), cpus.end());
  return {};
}

Result<> Machine::deliver_synchronously() {
  const Lock lock(mutex_);
  if (state() != MachineState::initialized) return wrong_state("change the delivery of");
  is_automatic_ = false;
  return {};
}

Result<> Machine::start(std::string_view text) {
  const Lock lock(mutex_);
  if (state() != MachineState::initialized) return wrong_state("start");
  auto address = parse_address(text);
  if (address) {
    wanted_ = *address;
    set_state(MachineState::starting);
    if (domain_->simulation) {
      kept_ = shared_from_this();
      return {};
    }
    auto thread = base::Thread::start([self = shared_from_this()] { self->run(); });
    if (thread) {
      thread_ = std::move(*thread);
      return {};
    }
    address = std::unexpected(std::move(thread.error()));
  }
  failure_ = address.error();
  set_state(MachineState::failed);
  return std::unexpected(std::move(address.error()));
}

Result<EndPoint> Machine::start_and_wait(std::string_view text) {
  if (auto started = start(text); !started) return std::unexpected(std::move(started.error()));
  Lock lock(mutex_);
  while (!has_told_start_) wait_for_change(lock);
  if (state() == MachineState::failed) return std::unexpected(failure_);
  return own_;
}

// Only of a started or stopping machine.
void Machine::begin_stop(StopMode mode) {
  set_state(MachineState::stopping);
  if (mode == StopMode::abort) {
    for (BufferState& buffer : queued_) end_early(buffer, BufferState::Ender::owner);
  }
  wake_thread();
  if (waiter_ == Waiter::application) core_->interrupt(port_);
}

Result<> Machine::stop(StopMode mode) {
  const std::shared_ptr<Machine> self = shared_from_this();  // the callback may destroy the handle
  Lock lock(mutex_);
  switch (state()) {
    case MachineState::initialized:
      set_state(MachineState::stopped);
      tell(lock, MachineEvent::Kind::state_change, Status::ok, MachineState::stopped, {});
      return {};
    case MachineState::starting:
      if (!must_stop_ || mode == StopMode::abort) stop_mode_ = mode;
      must_stop_ = true;
      return {};
    case MachineState::started:
      begin_stop(mode);
      return {};
    case MachineState::stopping:
      if (mode == StopMode::drain) return wrong_state("stop");
      begin_stop(mode);
      return {};
    default:
      return wrong_state("stop");
  }
}

Result<> Machine::stop_and_wait(StopMode mode) {
  {
    const Lock lock(mutex_);
    if (is_inside()) return refused(Status::bad_state, "a callback cannot wait for its own transfer machine to stop");
  }
  if (auto stopped = stop(mode); !stopped) return stopped;
  Lock lock(mutex_);
  while (!(has_ended() && is_turn_free())) wait_for_change(lock);
  if (state() == MachineState::failed) return std::unexpected(failure_);
  return {};
}

Result<> Machine::close() {
  Lock lock(mutex_);
  if (is_inside()) return refused(Status::bad_state, "a callback cannot close its own transfer machine");
  while (!is_turn_free()) wait_for_change(lock);
  const MachineState before = state();
  if (before != MachineState::initialized && before != MachineState::stopped && before != MachineState::failed) {
    return wrong_state("close");
  }
  last_sender_ = EndPoint();
  if (end_points_.is_referred(own_)) {
    return refused(Status::bad_state, "the application still refers to end points of the transfer machine: drop them");
  }
  own_ = EndPoint();
  set_state(MachineState::undefined);
  base::Thread thread = std::move(thread_);
  lock.unlock();
  thread.join();
  domain_->remove_machine(this);
  return {};
}

// The handle is going. Returns when no callback can come any more, except in a callback of this machine itself.
void Machine::let_go() {
  Lock lock(mutex_);
  switch (state()) {
    case MachineState::starting:
      stop_mode_ = StopMode::abort;
      must_stop_ = true;
      break;
    case MachineState::started:
    case MachineState::stopping:
      begin_stop(StopMode::abort);
      break;
    default:
      break;
  }
  if (is_inside()) {
    face_ = nullptr;
    if (is_in_deliver_all_) kept_by_delivery_ = shared_from_this();
    thread_.detach();  // it holds a reference to this machine
    return;
  }
  while (!(has_ended() && is_turn_free())) wait_for_change(lock);
  base::Thread thread = std::move(thread_);
  lock.unlock();
  thread.join();
}

// Questions ---------------------------------------------------------------------------------------------------------

Error Machine::failure() const {
  const Lock lock(mutex_);
  return failure_;
}

EndPoint Machine::end_point() const {
  const Lock lock(mutex_);
  return own_;
}

Result<EndPoint> Machine::create_end_point(std::string_view text) {
  const Lock lock(mutex_);
  if (state() != MachineState::started) return wrong_state("make an end point of");
  const auto address = parse_address(text);
  if (!address) return std::unexpected(address.error());
  if (address->has_star()) {
    return refused(Status::invalid, fmt::format("\"{}\" names no end point: `*` is for the start only", text));
  }
  if (!address->has_good_portal()) {
    return refused(Status::invalid,
                   fmt::format("portal {} of \"{}\" is not in 1..{}", address->portal, text, kPortalMax));
  }
  if (!is_same_network(address->engine, EndPointState::of(own_)->remote.engine)) {
    return refused(Status::unreachable, fmt::format("{} is of another network than {}: start a transfer machine on a "
                                                    "nid of that network (fairlead::net::local_nids())",
                                                    text, own_.address()));
  }
  return end_points_.find_or_make({address->engine, address->port()});
}

std::string Machine::describe(const EndPoint& end_point) const {
  const Lock lock(mutex_);
  if (!core_ || !end_point) return {};
  return core_->describe_peer(EndPointState::of(end_point)->remote.engine);
}

std::string Machine::describe_flight(const EndPoint& end_point) const {
  const Lock lock(mutex_);
  if (!core_ || !end_point) return {};
  return core_->describe_flight(EndPointState::of(end_point)->remote.engine);
}

std::uint64_t Machine::message_size_max() const noexcept {
  const Lock lock(mutex_);
  return core_ ? core_->message_size_max() : 0;
}

Statistics Machine::statistics(bool reset) {
  const Lock lock(mutex_);
  return reset ? std::exchange(statistics_, Statistics()) : statistics_;
}

std::uint64_t Machine::messages_dropped() const {
  const Lock lock(mutex_);
  return core_ ? core_->dropped_no_buffer(port_) : dropped_;
}

std::vector<Counter> Machine::engine_counters() const {
  std::shared_ptr<engine::Core> core;
  {
    const Lock lock(mutex_);
    core = core_;
  }
  std::vector<Counter> counters;
  if (!core) return counters;
  for (auto& fact : core->facts().counters) counters.push_back({std::move(fact.name), fact.value});
  return counters;
}

}  // namespace fairlead::net
