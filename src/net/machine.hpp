#pragma once
// Machine is the object behind a TransferMachine handle: one port of an engine, its queued buffers, and its event
// thread.
//
// Files: machine_life (start, stop, end), machine_thread (work of the event thread), machine_calls (the same work, done
// by the application's calls), machine_deliver (events).
// Parts: OperationQueues (the buffers), MachinePort (the place in the engine), Turn (which thread calls back),
// TakenEvents, DropReport, LossReport, ReceiveProvision, Changes.
//
// Lock: one mutex guards the whole machine, and serialises the Core calls that must not overlap. The machine holds it
// during Core calls that do not wait, but never during a callback or Core::wait().
//
// Threads: with automatic delivery, the machine has one event thread. With synchronous delivery it has none. Calls that
// deliver or wait first do their own work, and then that of the event thread (machine_calls): deadlines, reports of
// drops and lost peers, statistics, the end of a stop. A call that sleeps wakes at the latest when the next of these is
// due. Only notify() starts a thread in this mode, because somebody must wait in the application's place. That thread
// does nothing else.
//
// Turn: a thread takes the turn before it calls back, so callbacks run one at a time and in order. That is the event
// thread, or a thread in a call that delivers, starts or stops. The machine does not stop before the turn is free.
//
// Destruction: a thread that destroys a queued buffer waits for its final event. A thread inside a callback does not:
// the machine keeps the buffer without its handle, and delivers the event later. That buffer may be among the events
// that another thread is delivering, and that thread takes no lock between two events. The destroyer therefore waits
// until those events are delivered. It also continues if that thread itself waits in a callback (Turn::Pause): that
// thread checks again before it goes on.
//
// Batches: the machine takes many events from the Core at once, under one lock, and updates the books for all of them.
// It then delivers them one by one without the lock. Until an event is delivered, its buffer still counts as queued;
// only the books are closed.
//
// Simulation: the machine has no thread. The domain's Simulation steps it, and a blocking call lets the Simulation pass
// the time. All other code is the same.
//
// Deadlines: a sleeping thread wakes at `armed_` at the latest, and add() wakes it only for an earlier deadline. A
// deadline stays armed even if its buffer completes first. Traffic with equal time limits thus wakes the thread once
// per limit.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fairlead/net/transfer_machine.hpp>

#include "base/short_lock.hpp"
#include "base/thread.hpp"
#include "net/buffer_state.hpp"
#include "net/changes.hpp"
#include "net/domain_state.hpp"
#include "net/drop_report.hpp"
#include "net/last_refusal.hpp"
#include "net/loss_report.hpp"
#include "net/machine_calls.hpp"
#include "net/machine_port.hpp"
#include "net/net_address.hpp"
#include "net/operation_queues.hpp"
#include "net/receive_provision.hpp"
#include "net/statistics_report.hpp"
#include "net/taken_events.hpp"
#include "net/turn.hpp"

namespace fairlead::net {

class Machine : public std::enable_shared_from_this<Machine> {
 public:
  Machine(TransferMachine& face, std::shared_ptr<DomainState> domain, MachineCallback on_event);
  ~Machine();

  /// Returns whether the parent created this machine before a fork(). If so, the child must call nothing else.
  bool is_inherited() const noexcept { return domain_ && domain_->mark.is_inherited(); }

  // machine_life.cpp
  /// Registers the machine with its domain. If the domain is closed, the state becomes `undefined`.
  void enroll();
  Result<> confine(std::span<const unsigned> cpus);
  Result<> deliver_synchronously();
  Result<> attach(std::shared_ptr<PoolState> pool, Provision provision);
  Result<> report_statistics(Duration every);
  /// Changes the wishes for pool buffers, then lets the engine take more of them.
  Status wish(const std::function<Status(ReceiveProvision&)>& change);
  std::uint32_t receive_deficit() const;
  Result<> start(std::string_view text);
  Result<EndPoint> start_and_wait(std::string_view text);
  Result<> stop(StopMode mode);
  Result<> stop_and_wait(StopMode mode);
  Result<> close();
  void let_go();
  /// Simulation only: does the event thread's work that is due. Returns when to call again if nothing else happens.
  Instant step();
  MachineState state() const noexcept { return state_.load(std::memory_order_acquire); }
  Error failure() const;
  Result<EndPoint> create_end_point(std::string_view text);
  /// Calls `question` with the machine's port, under the lock, and returns its answer.
  template <typename Question>
  auto ask(Question&& question) const {
    const Lock lock(mutex_);
    return question(port_);
  }
  Statistics statistics(bool reset);

  template <typename Operation>
  Status add(Buffer& buffer, const Operation& operation);
  /// Adds many under one lock. submit(queues, deadline) adds them, and lowers `deadline` to their earliest one.
  template <typename Submit>
  TransferMachine::Added add_many(Submit&& submit);
  bool cancel(Buffer& buffer);

  // machine_deliver.cpp
  /// Ends the operation of a buffer that is being destroyed. Returns after its final event. Must not be called in a
  /// callback.
  void finish(BufferState& buffer);
  /// Does the same from within a callback: returns when the engine no longer uses the memory. The final event follows
  /// later, when the handle is gone. Returns false if the event was delivered already, or is being delivered.
  bool abandon(BufferState& buffer);
  Turn& turn() { return turn_; }
  /// The calls for synchronous delivery.
  MachineCalls& calls() { return calls_; }

 private:
  friend class MachineCalls;
  using Lock = std::unique_lock<base::ShortLock>;

  /// Which thread is in Core::wait(), which admits one at a time.
  enum class Waiter : std::uint8_t { nobody, event_thread, application };

  // machine_life.cpp
  /// Applies a change that is allowed only before the start.
  template <typename Change>
  Result<> configure(std::string_view what, Change&& change);
  std::unexpected<Error> wrong_state(std::string_view action) const;
  bool is_inside() const;
  bool has_ended() const;
  void begin_stop(StopMode mode);
  void tell(Lock& lock, MachineEvent::Kind kind, Status status, MachineState next, std::string_view text,
            std::string_view peer = {});
  void set_state(MachineState state) { state_.store(state, std::memory_order_release); }

  // machine_thread.cpp
  void run();
  bool begin(Lock& lock);
  Result<> bring_up(const NetAddress& address);
  bool serve(Lock& lock);
  void take_down(Lock& lock);
  void rest(Lock& lock);
  void signal_pending(Lock& lock);
  bool has_news();
  void report_news(Lock& lock);
  void report_statistics(Lock& lock);
  /// Returns whether all buffers are back; may_close() also requires that no thread works on the machine.
  bool is_empty_at_end();
  bool may_close();
  /// Performs the last step of a stop, if it is due and calls drive the machine.
  void end_stop(Lock& lock) {
    if (is_driven_by_calls() && may_close()) take_down(lock);
  }
  /// Returns when a thread has to look at the machine even if nothing happens.
  Instant next_look() { return std::min({queues_.earliest_deadline(), drops_.look_at(), figures_.next()}); }
  /// Makes the sleeping thread look again.
  void wake_sleeper();
  /// Returns whether the event thread delivers buffer events. In a simulation, it is the simulation once the machine is
  /// stopping.
  bool is_thread_delivering() const {
    return is_automatic_ || (domain_->simulation && state() != MachineState::started);
  }

  /// Returns whether the application's calls do the work of an event thread.
  bool is_driven_by_calls() const { return !is_automatic_ && !domain_->simulation; }

  // machine_deliver.cpp
  bool has_event() const { return !taken_.is_empty() || port_.core->has_event(port_.handle); }
  std::size_t deliver(Lock& lock, std::size_t most);
  std::size_t deliver_some(Lock& lock, std::size_t budget);
  /// Take what the Core has queued, or run a pass over the transports first.
  enum class Look : std::uint8_t { queue, pass };
  bool take_events(std::size_t most, Look look);
  std::size_t tell_events(Lock& lock, std::size_t most);
  Loan take_loan(std::uint64_t name);
  void end_turn();

  const std::shared_ptr<DomainState> domain_;
  const MachineCallback on_event_;

  mutable base::ShortLock mutex_;
  Changes changes_{domain_.get()};           // of the state and the turn
  std::condition_variable_any thread_wake_;  // wakes the event thread while it is not in the Core

  TransferMachine* face_;                                       // null after the application has destroyed the handle
  std::atomic<MachineState> state_{MachineState::initialized};  // written under the lock
  Error failure_{Status::ok, 0, {}};
  NetAddress wanted_;    // set by start()
  std::string ignored_;  // the domain's settings that the engine does not follow, in one line
  std::vector<unsigned> cpus_;
  bool is_automatic_ = true;
  bool has_told_end_of_engine_ = false;
  bool has_told_start_ = false;  // the callback for started or failed has returned
  bool must_stop_ = false;       // stop() was called while starting
  StopMode stop_mode_ = StopMode::drain;

  MachinePort port_;
  ReceiveProvision provision_;
  OperationQueues queues_{*this, domain_.get(), port_, provision_};
  TakenEvents taken_;
  DropReport drops_;
  LossReport losses_;
  StatisticsReport figures_;
  // A sleeping thread looks again by this time. While no thread sleeps, it is so early that no deadline is earlier.
  Instant armed_ = kNever;

  Turn turn_{*this, mutex_, changes_};
  std::uint32_t abandoning_ = 0;  // callbacks on other threads that wait until this machine delivers nothing
  Waiter waiter_ = Waiter::nobody;
  std::function<void()> signal_;  // of notify(), not called yet
  base::Thread thread_;
  MachineCalls calls_{*this};
  // A reference to itself. In a simulation it replaces the thread's reference, from start() to the end. Where calls
  // drive the machine, it is set if a callback destroys the handle, until the delivering call ends.
  std::shared_ptr<Machine> kept_;
};

inline constexpr const char* kNotStarted = "the transfer machine is not started, or is stopping";

template <typename Operation>
Status Machine::add(Buffer& buffer, const Operation& operation) {
  const Lock lock(mutex_);
  if (state_.load(std::memory_order_relaxed) != MachineState::started)
    return refuse_add(Status::bad_state, kNotStarted);
  const Status status = queues_.add(BufferState::of(buffer), operation);
  if (operation.deadline < armed_ && status == Status::ok) wake_sleeper();
  return status;
}

template <typename Submit>
TransferMachine::Added Machine::add_many(Submit&& submit) {
  const Lock lock(mutex_);
  if (state_.load(std::memory_order_relaxed) != MachineState::started)
    return {0, refuse_add(Status::bad_state, kNotStarted)};
  Instant deadline = kNever;
  const TransferMachine::Added added = submit(queues_, deadline);
  if (deadline < armed_) wake_sleeper();
  return added;
}

}  // namespace fairlead::net
