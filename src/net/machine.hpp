#pragma once
// What a TransferMachine is behind its handle: one port of an engine, its queued buffers, and its event thread.
//
// The files: machine_life (start, stop, end), machine_thread (what the event thread does), machine_calls (what the
// application's calls do instead of it), machine_deliver (events).
// Its nouns: OperationQueues (the buffers), MachinePort (the place in the engine), Turn (who calls back), TakenEvents,
// DropReport, LossReport, ReceiveProvision, Changes.
//
// Lock. One mutex guards everything here, and makes the calls that the Core wants one at a time. It is held over
// Core calls that do not wait, never over a callback nor Core::wait().
//
// Threads. With automatic delivery a machine has one, the event thread. With synchronous delivery it has none: what
// that thread would see to (deadlines, news of the engine, figures, the end of a stop) is done by the calls that
// deliver or wait, after they have done their own (machine_calls). Those that sleep do so until the next of these is
// due, at most. Only notify() needs somebody who waits beside the application, and starts a thread that does nothing
// else.
//
// Turn. Whoever calls back takes the turn, so that callbacks run one at a time and in order: the event thread, or a
// thread in a call that delivers, starts or stops. The machine does not stop before the turn is free.
//
// Destruction. Who destroys a queued buffer waits for its final event, but not in a callback: there the machine keeps
// the buffer without its handle, and tells the event later. It may be among those about to be told, by a thread that
// looks at no lock between two of them; so the destroyer waits until that thread has told those, or waits itself in a
// callback (Turn::Pause): then it will look.
//
// Events are taken from the Core many at a time, with one lock for the account of all; then they are told one after
// another without it. Until an event is told its buffer is queued for everybody, only the account has closed with it.
//
// Simulation. Without a thread of its own a machine is stepped by the domain's Simulation, and what waits lets that
// pass the time. Everything else is the same code.
//
// Deadlines. Whoever sleeps does so until `armed_` at most, and add() wakes him for an earlier one only. A deadline
// once armed stays armed though its buffer completes first: traffic with equal time limits wakes the thread once per
// limit.

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

  /// Whether it was made by the process that forked this one. Then nothing is to be called but this.
  bool is_inherited() const noexcept { return domain_ && domain_->mark.is_inherited(); }

  // machine_life.cpp
  /// Makes it known to its domain; it is undefined if that is closed.
  void enroll();
  Result<> confine(std::span<const unsigned> cpus);
  Result<> deliver_synchronously();
  Result<> attach(std::shared_ptr<PoolState> pool, Provision provision);
  Result<> report_statistics(Duration every);
  /// Changes what is wished of the pool, and takes what it has more.
  Status wish(const std::function<Status(ReceiveProvision&)>& change);
  std::uint32_t receive_deficit() const;
  Result<> start(std::string_view text);
  Result<EndPoint> start_and_wait(std::string_view text);
  Result<> stop(StopMode mode);
  Result<> stop_and_wait(StopMode mode);
  Result<> close();
  void let_go();
  /// Instead of the event thread, in a simulation: does what is due, and says when it wants to be called again though
  /// nothing happens.
  Instant step();
  MachineState state() const noexcept { return state_.load(std::memory_order_acquire); }
  Error failure() const;
  Result<EndPoint> create_end_point(std::string_view text);
  /// What `question` makes of the machine's place in the engine, under the lock.
  template <typename Question>
  auto ask(Question&& question) const {
    const Lock lock(mutex_);
    return question(port_);
  }
  Statistics statistics(bool reset);

  template <typename Operation>
  Status add(Buffer& buffer, const Operation& operation);
  TransferMachine::Added add(std::span<Buffer* const> buffers, const MessageSend& operation);
  bool cancel(Buffer& buffer);

  // machine_deliver.cpp
  /// Ends the operation of a buffer that is being destroyed; returns after its final event. Not in a callback.
  void finish(BufferState& buffer);
  /// The same in a callback: returns when the engine is done with the memory; the final event comes later, when nobody
  /// has the handle any more. False if the event is told already, or at this moment.
  bool abandon(BufferState& buffer);
  Turn& turn() { return turn_; }
  /// Of an application that delivers by itself.
  MachineCalls& calls() { return calls_; }

 private:
  friend class MachineCalls;
  using Lock = std::unique_lock<base::ShortLock>;

  /// Who is in Core::wait(): it takes one at a time.
  enum class Waiter : std::uint8_t { nobody, event_thread, application };

  // machine_life.cpp
  /// Before the start.
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
  /// All buffers are back; and nobody is at it, too.
  bool is_empty_at_end();
  bool may_close();
  /// The last step of a stop, once it may be made, where calls drive the machine.
  void end_stop(Lock& lock) {
    if (is_driven_by_calls() && may_close()) take_down(lock);
  }
  /// When somebody has to look at the machine though nothing happens.
  Instant next_look() { return std::min({queues_.earliest_deadline(), drops_.look_at(), figures_.next()}); }
  /// Whoever sleeps looks again.
  void wake_sleeper();
  /// Whether buffer events are the event thread's to deliver; or, once it is stopped, the simulation's.
  bool is_thread_delivering() const {
    return is_automatic_ || (domain_->simulation && state() != MachineState::started);
  }

  /// The application's calls do what an event thread does elsewhere.
  bool is_driven_by_calls() const { return !is_automatic_ && !domain_->simulation; }

  // machine_deliver.cpp
  bool has_event() const { return !taken_.is_empty() || port_.core->has_event(port_.handle); }
  std::size_t deliver(Lock& lock, std::size_t most);
  std::size_t deliver_some(Lock& lock, std::size_t budget);
  /// At what the Core has, or what a pass brings as well.
  enum class Look : std::uint8_t { queue, pass };
  bool take_events(std::size_t most, Look look);
  std::size_t tell_events(Lock& lock, std::size_t most);
  Loan take_loan(std::uint64_t name);
  void end_turn();

  const std::shared_ptr<DomainState> domain_;
  const MachineCallback on_event_;

  mutable base::ShortLock mutex_;
  Changes changes_{domain_.get()};           // state, turn
  std::condition_variable_any thread_wake_;  // the event thread, while it does not wait in the Core

  TransferMachine* face_;                                       // null when the application has let go of it
  std::atomic<MachineState> state_{MachineState::initialized};  // written under the lock
  Error failure_{Status::ok, 0, {}};
  NetAddress wanted_;    // from start() on
  std::string ignored_;  // settings of the domain that the engine does not follow, in one line
  std::vector<unsigned> cpus_;
  bool is_automatic_ = true;
  bool has_told_end_of_engine_ = false;
  bool has_told_start_ = false;  // the callback of started or failed has returned
  bool must_stop_ = false;       // stop() came while starting
  StopMode stop_mode_ = StopMode::drain;

  MachinePort port_;
  ReceiveProvision provision_;
  OperationQueues queues_{*this, domain_.get(), port_, provision_};
  TakenEvents taken_;
  DropReport drops_;
  LossReport losses_;
  StatisticsReport figures_;
  EndPoint last_sender_;  // of the message delivered last
  // Whoever sleeps looks again by then; while nobody does, so early that no deadline is earlier.
  Instant armed_ = kNever;

  Turn turn_{*this, mutex_, changes_};
  std::uint32_t abandoning_ = 0;  // callbacks elsewhere that wait until nothing is told here
  Waiter waiter_ = Waiter::nobody;
  std::function<void()> signal_;  // of notify(), not called yet
  base::Thread thread_;
  MachineCalls calls_{*this};
  // Itself: in a simulation from start() to its end, as a thread would keep it; where calls drive it, from the
  // destruction of the handle in a callback to the end of the call that this was in.
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

}  // namespace fairlead::net
