#pragma once
// What a TransferMachine is behind its handle: one port of an engine, its queued buffers, and its event thread.
//
// The files: machine_life (start, stop, end), machine_thread (what the event thread does), machine_add (operations),
// machine_deliver (events).
//
// Lock. One mutex guards everything here, and makes the calls that the Core wants one at a time. It is held over
// Core calls that do not wait, never over a callback nor Core::wait().
//
// Turn. Whoever calls back takes the turn, so that callbacks run one at a time and in order: the event thread, a
// thread in deliver_all(), or stop() of a machine without a thread. The machine does not stop before the turn is free.
//
// Destruction. Who destroys a queued buffer waits for its final event, but not in a callback: there the machine keeps
// the buffer without its handle, and tells the event later. It may be among those about to be told, by a thread that
// looks at no lock between two of them; so the destroyer waits until that thread has told those, or waits itself in a
// callback (is_turn_paused_): then it will look.
//
// Events are taken from the Core many at a time, with one lock for the account of all; then they are told one after
// another without it. Until an event is told its buffer is queued for everybody, only the account has closed with it.
//
// Simulation. Without a thread of its own a machine is stepped by the domain's Simulation, and what waits lets that
// pass the time. Everything else is the same code.
//
// Drops. The engine ends the event thread's wait when a message is dropped, once; the thread tells how many, and looks
// again a little later. Where the application waits instead, or polls, its call wakes the thread.
//
// Deadlines. The event thread sleeps at most until `armed_`, and add() wakes it for an earlier one only. A deadline
// once armed stays armed though its buffer completes first: traffic with equal time limits wakes it once per limit.

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <boost/intrusive/list.hpp>

#include <fairlead/net/transfer_machine.hpp>

#include "base/short_lock.hpp"
#include "base/thread.hpp"
#include "net/buffer_state.hpp"
#include "net/deadline_queue.hpp"
#include "net/domain_state.hpp"
#include "net/end_point_table.hpp"
#include "net/net_address.hpp"

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
  EndPoint end_point() const;
  Result<EndPoint> create_end_point(std::string_view text);
  std::string describe(const EndPoint& end_point) const;
  std::string describe_flight(const EndPoint& end_point) const;
  std::uint64_t message_size_max() const noexcept;
  Statistics statistics(bool reset);
  std::uint64_t messages_dropped() const;
  std::vector<Counter> engine_counters() const;

  // machine_add.cpp
  Status add(Buffer& buffer, const MessageReceive& operation);
  Status add(Buffer& buffer, const MessageSend& operation);
  Status add(Buffer& buffer, const PassiveReceive& operation);
  Status add(Buffer& buffer, const PassiveSend& operation);
  Status add(Buffer& buffer, const ActiveReceive& operation);
  Status add(Buffer& buffer, const ActiveSend& operation);
  TransferMachine::Added add(std::span<Buffer* const> buffers, const MessageSend& operation);
  bool cancel(Buffer& buffer);

  // machine_deliver.cpp
  std::expected<std::size_t, Status> deliver_all(std::size_t budget);
  bool pending();
  std::expected<bool, Status> wait(Instant deadline);
  Status notify(std::function<void()> signal);
  /// Of a loan.
  void give_back(std::uint64_t name);
  /// Ends the operation of a buffer that is being destroyed; returns after its final event. Not in a callback.
  void finish(BufferState& buffer);
  /// The same in a callback: returns when the engine is done with the memory; the final event comes later, when nobody
  /// has the handle any more. False if the event is told already, or at this moment.
  bool abandon(BufferState& buffer);
  /// Whether the calling thread is in a callback of some machine.
  static bool is_calling() noexcept;
  /// While the calling thread waits in its callbacks: their machines tell nothing meanwhile, for sure.
  class PausedTurns {
   public:
    PausedTurns() { mark(true); }
    ~PausedTurns() { mark(false); }
    PausedTurns(const PausedTurns&) = delete;
    PausedTurns& operator=(const PausedTurns&) = delete;
    /// The machines in whose callbacks the calling thread is.
    static std::vector<const Machine*> all();

   private:
    static void mark(bool is_paused);
  };
  /// Whether its final event is told at this moment. Any thread.
  bool tells(const BufferState& buffer) const noexcept { return told_.load(std::memory_order_acquire) == &buffer; }

 private:
  using Lock = std::unique_lock<base::ShortLock>;
  using Queue = boost::intrusive::list<
      BufferState, boost::intrusive::member_hook<BufferState, BufferState::QueueHook, &BufferState::queue_hook>>;

  /// Who is in Core::wait(): it takes one at a time.
  enum class Waiter : std::uint8_t { nobody, event_thread, application };

  // machine_life.cpp
  std::unexpected<Error> wrong_state(std::string_view action) const;
  bool is_inside() const;
  bool has_ended() const;
  void begin_stop(StopMode mode);
  void tell(Lock& lock, MachineEvent::Kind kind, Status status, MachineState next, std::string_view text);
  void set_state(MachineState state) { state_.store(state, std::memory_order_release); }

  // machine_thread.cpp
  void run();
  bool begin(Lock& lock);
  Result<> bring_up(const NetAddress& address);
  bool serve(Lock& lock);
  void take_down(Lock& lock);
  void rest(Lock& lock);
  void signal_pending(Lock& lock);
  void report_drops(Lock& lock);
  void look_for_drops();
  void expire_deadlines();
  void wake_thread();
  void wait_for_change(Lock& lock, Duration at_most = Duration::max());
  void tell_changed() {
    if (waiting_ > 0) changed_.notify_all();
  }
  /// Whether buffer events are the event thread's to deliver.
  bool is_thread_delivering() const { return is_automatic_ || state() != MachineState::started; }

  // machine_add.cpp
  struct Plan;
  Status admit(const BufferState& buffer, QueueKind kind) const;
  template <typename Submit>
  Status enqueue(BufferState& buffer, const Plan& plan, Submit&& submit);
  void keep(BufferState& buffer, const Plan& plan, const engine::OperationHandle& operation, Instant added);
  Status add_some(std::span<Buffer* const> buffers, const MessageSend& operation, Instant added, std::size_t& count);
  static constexpr std::size_t kAddedAtOnce = 32;
  Status expose(BufferState& buffer, QueueKind kind, std::uint64_t length, Instant deadline);
  Status transfer(BufferState& buffer, QueueKind kind, std::span<const std::byte> descriptor, std::uint64_t length,
                  Instant deadline);
  void end_early(BufferState& buffer, BufferState::Ender ender);

  // machine_deliver.cpp
  bool has_event() const { return next_taken_ != end_taken_ || core_->has_event(port_); }
  std::size_t deliver(Lock& lock, std::size_t most);
  std::size_t deliver_some(Lock& lock, std::size_t budget);
  /// At what the Core has, or what a pass brings as well.
  enum class Look : std::uint8_t { queue, pass };
  bool take_events(std::size_t most, Look look);
  std::size_t tell_events(Lock& lock, std::size_t most);
  Loan take_loan(std::uint64_t name);
  void note(const BufferState& buffer, const engine::Completion& completion);
  void take_turn();
  void end_turn();
  bool is_telling_elsewhere() const {
    return !is_turn_free() && !is_turn_paused_ && turn_ != std::this_thread::get_id();
  }
  bool is_turn_free() const { return turn_ == std::thread::id(); }

  const std::shared_ptr<DomainState> domain_;
  const MachineCallback on_event_;

  mutable base::ShortLock mutex_;
  std::condition_variable_any changed_;      // state, turn
  std::uint32_t waiting_ = 0;                // for it
  std::condition_variable_any thread_wake_;  // the event thread, while it does not wait in the Core

  TransferMachine* face_;                                       // null when the application has let go of it
  std::atomic<MachineState> state_{MachineState::initialized};  // written under the lock
  Error failure_{Status::ok, 0, {}};
  NetAddress wanted_;    // from start() on
  std::string ignored_;  // settings of the domain that the engine does not follow, in one line
  std::vector<unsigned> cpus_;
  bool is_automatic_ = true;
  bool has_told_start_ = false;  // the callback of started or failed has returned
  bool must_stop_ = false;       // stop() came while starting
  StopMode stop_mode_ = StopMode::drain;

  std::shared_ptr<engine::Core> core_;  // from started to stopped
  engine::PortHandle port_;
  EndPoint own_;
  EndPointTable end_points_;
  EndPoint last_sender_;  // of the message delivered last

  // Events that were taken from the Core at once, counted, and not told yet. Belong to whoever has the turn.
  static constexpr std::size_t kTakenMax = 128;  // at least what comes in one record
  std::array<engine::Completion, kTakenMax> taken_;
  std::size_t next_taken_ = 0, end_taken_ = 0;

  Queue queued_;
  DeadlineQueue deadlines_;
  Instant armed_ = kNever;  // the event thread looks again by then
  Statistics statistics_;
  std::uint64_t dropped_ = 0;  // as last told
  Instant drops_at_ = kNever;  // drops are looked at again, after some were told

  std::atomic<const BufferState*> told_{nullptr};  // whose final event is told; of a call within a call only the inner
  std::thread::id turn_;                           // who calls back; nobody's by default
  Machine* outer_turn_ = nullptr;                  // of the same thread: whose callback the turn was taken in
  bool is_turn_paused_ = false;                    // it waits in a callback, for what others do
  std::uint32_t abandoning_ = 0;                   // callbacks elsewhere that wait until nothing is told here
  Waiter waiter_ = Waiter::nobody;
  std::function<void()> signal_;  // of notify(), not called yet
  base::Thread thread_;
  bool is_in_deliver_all_ = false;             // its thread has the turn
  std::shared_ptr<Machine> kept_by_delivery_;  // itself, if the handle was destroyed in a callback of deliver_all()
  std::shared_ptr<Machine> kept_;  // in a simulation: itself, from start() to its end, as a thread would keep it
};

}  // namespace fairlead::net
