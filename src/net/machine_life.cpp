// The states of a machine, from construction to close, and queries.

#include <new>
#include <utility>

#include <fmt/format.h>

#include "net/clock.hpp"
#include "net/machine.hpp"
#include "net/refused.hpp"

namespace fairlead::net {
namespace {

template <typename Work>
Result<base::Thread> start_thread(Work work) try {
  return base::Thread::start(std::move(work));
} catch (const std::bad_alloc&) {
  return refused(Status::no_memory, "no memory");
}

}  // namespace

Machine::Machine(TransferMachine& face, std::shared_ptr<DomainState> domain, MachineCallback on_event)
    : domain_(std::move(domain)), on_event_(std::move(on_event)), face_(&face) {}

void Machine::enroll() {
  if (!domain_ || !domain_->add_machine(shared_from_this())) set_state(MachineState::undefined);
}

Machine::~Machine() {
  if (domain_) domain_->remove_machine(this);
}

std::unexpected<Error> Machine::wrong_state(std::string_view action) const {
  const MachineState now = state();
  const std::string_view why =
      now == MachineState::undefined ? ": it is closed, or its domain was closed, moved or made before a fork()" : "";
  return refused(Status::bad_state,
                 fmt::format("cannot {} a transfer machine that is {}{}", action, to_string(now), why));
}

// Returns whether the calling thread is in one of this machine's callbacks.
bool Machine::is_inside() const {
  return turn_.is_mine() || thread_.is_this();
}

bool Machine::has_ended() const {
  const MachineState now = state();
  return now != MachineState::starting && now != MachineState::started && now != MachineState::stopping;
}

// Calls back about the machine itself, after taking the turn. The state has already changed.
void Machine::tell(Lock& lock, MachineEvent::Kind kind, Status status, MachineState next, std::string_view text,
                   std::string_view peer) {
  while (!turn_.is_free()) changes_.wait(lock);
  turn_.take();
  if (on_event_ && face_ != nullptr) {
    const EndPoint own = next == MachineState::started ? port_.own : EndPoint();
    const MachineEvent event{.kind = kind,
                             .machine = *face_,
                             .time = domain_->time(),
                             .status = status,
                             .next_state = next,
                             .end_point = own,
                             .text = text,
                             .peer = peer};
    lock.unlock();
    [&]() noexcept { on_event_(event); }();
    lock.lock();
  }
  end_turn();
}

template <typename Change>
Result<> Machine::configure(std::string_view what, Change&& change) {
  const Lock lock(mutex_);
  if (state() != MachineState::initialized) return wrong_state(what);
  return change();
}

Result<> Machine::confine(std::span<const unsigned> cpus) {
  return configure("confine", [&]() -> Result<> {
    if (cpus.empty()) return refused(Status::invalid, "a confinement to no CPU: name at least one");
    cpus_.assign(cpus.begin(), cpus.end());
    return {};
  });
}

Result<> Machine::deliver_synchronously() {
  return configure("change the delivery of", [&]() -> Result<> {
    is_automatic_ = false;
    return {};
  });
}

Result<> Machine::attach(std::shared_ptr<PoolState> pool, Provision provision) {
  return configure("attach a pool to", [&]() -> Result<> {
    auto attached = provision_.attach(domain_.get(), std::move(pool), std::move(provision));
    if (attached) provision_.pool()->attach(weak_from_this());
    return attached;
  });
}

Result<> Machine::report_statistics(Duration every) {
  return configure("change the figures of", [&]() -> Result<> {
    if (every < std::chrono::milliseconds(1) || every > std::chrono::hours(24))
      return refused(Status::invalid, "figures every so often: want 1 ms to 1 day");
    figures_.set(every);
    return {};
  });
}

Status Machine::wish(const std::function<Status(ReceiveProvision&)>& change) {
  const Lock lock(mutex_);
  const MachineState now = state();
  const bool is_early = now == MachineState::initialized || now == MachineState::starting;
  if (!provision_.is_attached() || (!is_early && now != MachineState::started)) return Status::bad_state;
  const Status changed = change(provision_);
  if (changed == Status::ok && now == MachineState::started) provision_.fill(port_);
  return changed;
}

std::uint32_t Machine::receive_deficit() const {
  const Lock lock(mutex_);
  return state() == MachineState::started ? provision_.deficit(port_) : 0;
}

Result<> Machine::start(std::string_view text) {
  std::shared_ptr<Machine> self;  // keeps the machine alive until the lock is released
  Lock lock(mutex_);
  if (state() != MachineState::initialized) return wrong_state("start");
  auto address = parse_address(text);
  if (address) {
    wanted_ = *address;
    set_state(MachineState::starting);
    if (domain_->simulation) {
      kept_ = shared_from_this();
      return {};
    }
    if (is_driven_by_calls()) {
      begin(lock);
      self = calls_.end_of_call(lock);
      return {};
    }
    auto thread = start_thread([self = shared_from_this()] { self->run(); });
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
  const std::shared_ptr<Machine> self = shared_from_this();  // the callback may destroy the handle
  if (auto started = start(text); !started) return std::unexpected(std::move(started.error()));
  Lock lock(mutex_);
  while (!has_told_start_) changes_.wait(lock);
  if (state() == MachineState::failed) return std::unexpected(failure_);
  return port_.own;
}

// The machine must be started or stopping.
void Machine::begin_stop(StopMode mode) {
  set_state(MachineState::stopping);
  provision_.withdraw(port_);
  if (mode == StopMode::abort) queues_.end_all();
  wake_sleeper();
  if (waiter_ == Waiter::application || calls_.was_armed()) port_.core->interrupt(port_.handle);
}

Result<> Machine::stop(StopMode mode) {
  const std::shared_ptr<Machine> self = shared_from_this();  // the callback may destroy the handle
  Lock lock(mutex_);
  switch (state()) {
    case MachineState::initialized:
      set_state(MachineState::stopped);
      tell(lock, MachineEvent::Kind::state_change, Status::ok, MachineState::stopped, {});
      calls_.end_of_call(lock);
      return {};
    case MachineState::starting:
      if (!must_stop_ || mode == StopMode::abort) stop_mode_ = mode;
      must_stop_ = true;
      return {};
    case MachineState::started:
      break;
    case MachineState::stopping:
      if (mode == StopMode::drain) return wrong_state("stop");
      break;
    default:
      return wrong_state("stop");
  }
  begin_stop(mode);
  end_stop(lock);
  calls_.end_of_call(lock);
  return {};
}

Result<> Machine::stop_and_wait(StopMode mode) {
  const std::shared_ptr<Machine> self = shared_from_this();
  {
    const Lock lock(mutex_);
    if (is_inside()) return refused(Status::bad_state, "a callback cannot wait for its own transfer machine to stop");
  }
  if (auto stopped = stop(mode); !stopped) return stopped;
  Lock lock(mutex_);
  calls_.drive_to_end(lock);
  calls_.end_of_call(lock);
  if (state() == MachineState::failed) return std::unexpected(failure_);
  return {};
}

Result<> Machine::close() {
  Lock lock(mutex_);
  if (is_inside()) return refused(Status::bad_state, "a callback cannot close its own transfer machine");
  while (!turn_.is_free()) changes_.wait(lock);
  const MachineState before = state();
  if (before != MachineState::initialized && before != MachineState::stopped && before != MachineState::failed) {
    return wrong_state("close");
  }
  if (port_.end_points.is_referred(port_.own)) {
    return refused(Status::bad_state, "the application still refers to end points of the transfer machine: drop them");
  }
  port_.own = EndPoint();
  set_state(MachineState::undefined);
  base::Thread thread = std::move(thread_);
  lock.unlock();
  thread.join();
  domain_->remove_machine(this);
  return {};
}

// Called by the handle's destructor. Returns when no more callbacks can come, unless called from a callback of this
// machine.
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
    if (is_driven_by_calls()) kept_ = shared_from_this();
    thread_.detach();  // the thread holds a reference to this machine
    return;
  }
  calls_.drive_to_end(lock);
  base::Thread thread = std::move(thread_);
  lock.unlock();
  thread.join();
}

// Questions ---------------------------------------------------------------------------------------------------------

Error Machine::failure() const {
  const Lock lock(mutex_);
  return failure_;
}

Result<EndPoint> Machine::create_end_point(std::string_view text) {
  const Lock lock(mutex_);
  if (state() != MachineState::started) return wrong_state("make an end point of");
  return port_.create_end_point(text);
}

bool Machine::cancel(Buffer& face) {
  BufferState& buffer = BufferState::of(face);
  const Lock lock(mutex_);
  if (buffer.machine.load(std::memory_order_relaxed) != this) return false;
  queues_.end_early(buffer, BufferState::Ender::owner);
  return true;
}

Statistics Machine::statistics(bool reset) {
  const Lock lock(mutex_);
  return queues_.statistics(reset);
}

}  // namespace fairlead::net
