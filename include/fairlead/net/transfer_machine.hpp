#pragma once
// An address with six queues of buffers: where an application sends, receives and transfers (docs/net.md).

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>
#include <fairlead/net/buffer.hpp>
#include <fairlead/net/buffer_pool.hpp>
#include <fairlead/net/domain.hpp>
#include <fairlead/net/end_point.hpp>
#include <fairlead/net/event.hpp>
#include <fairlead/net/loan.hpp>
#include <fairlead/net/statistics.hpp>
#include <fairlead/time.hpp>

namespace fairlead::net {

/// Takes messages of any sender, in the order of adding. Each is placed directly behind the previous one. The buffer
/// ends (final event) when fewer than `size_min` bytes are left or `messages_max` messages have arrived. A message that
/// does not fit into the rest of one buffer goes to the next that can take it, or is dropped and counted. So let
/// size_min be the largest message expected.
struct MessageReceive {
  std::uint64_t size_min = kWholeBuffer;  ///< bytes, 1..Buffer::size()
  std::uint32_t messages_max = 1;         ///< 1..kMessagesInBufferMax
  Instant deadline = kNever;              ///< of the whole buffer
  /// Messages that are lent come as BufferEvent::loan. They count, but take no room. Without it, and those that are not
  /// lent, they are copied into the buffer: look at the event.
  bool takes_loans = false;
};
inline constexpr std::uint32_t kMessagesInBufferMax = 4096;

/// One message: the first `length` bytes of the buffer. Success says that the peer's engine has it, not that a buffer
/// took it there (TransferMachine::messages_dropped() of the receiver counts those that none took). If that engine has
/// no such transfer machine the message is `refused` (over the network, unless its acknowledgement comes first). A
/// message longer than 64 KiB ends `no_buffer`, without travelling in full, if no buffer there can take it.
struct MessageSend {
  Destination to{};                     ///< an EndPoint of the same transfer machine
  std::uint64_t length = kWholeBuffer;  ///< bytes, 1..Buffer::size()
  Instant deadline = kNever;
  /// Lends the buffer: a receiver on this host reads it in place, if Buffer::allocate() made it after the machine's
  /// start. The final event comes when it has been given back (refused: the reader is gone, silent: given up). All
  /// others get a copy, as without it. Cancelled, the buffer is free though it may still be read.
  bool is_loan = false;
  /// The event waits for the receiver's word: ok if a buffer took it, no_buffer, or refused. Costs a round trip. Such a
  /// message is not lent.
  bool is_confirmed = false;
};

/// Lets the holder of Buffer::descriptor() write the buffer, once.
struct PassiveReceive {
  Instant deadline = kNever;
};

/// Lets the holder of Buffer::descriptor() read the first `length` bytes, once.
struct PassiveSend {
  std::uint64_t length = kWholeBuffer;  ///< bytes, 1..Buffer::size()
  Instant deadline = kNever;
};

/// Reads what the descriptor of a passive_bulk_send buffer names; the buffer must be able to hold all of it.
struct ActiveReceive {
  std::span<const std::byte> descriptor;  ///< kDescriptorSize bytes; not needed after add()
  Instant deadline = kNever;
};

/// Writes the first `length` bytes to what the descriptor of a passive_bulk_receive buffer names, which must be able
/// to hold them.
struct ActiveSend {
  std::span<const std::byte> descriptor;  ///< kDescriptorSize bytes; not needed after add()
  std::uint64_t length = kWholeBuffer;    ///< bytes, 1..Buffer::size()
  Instant deadline = kNever;
};

/// What stop() does with buffers that are queued.
enum class StopMode : std::uint8_t {
  drain,  ///< waits until each has ended by itself
  abort,  ///< cancels them
};

class Machine;

/// It is an object with an identity (events refer to it) and does not move. States:
///
///   initialized --start--> starting --> started --stop--> stopping --> stopped
///        |                     \------> failed
///        \--stop--> stopped                            close: any of initialized, stopped, failed --> undefined
///
/// Each of started, stopped and failed is told by one event. start() fails at once, without an event, if the address
/// is malformed. A stop() while starting is remembered and performed right after `started`.
class TransferMachine {
 public:
  /// `on_event` may be empty. State initialized, or undefined if the domain is closed.
  explicit TransferMachine(Domain& domain, MachineCallback on_event = {});
  TransferMachine(const TransferMachine&) = delete;
  TransferMachine& operator=(const TransferMachine&) = delete;
  /// Of a running machine: stop(abort), and waits until it has stopped; the events until then are delivered. In a
  /// callback of the machine itself it does not wait: the rest follows after the callback, without machine events.
  ~TransferMachine();

  // ---- before the start

  /// The event thread will run on these CPUs only; replaces an earlier choice. `bad_state` unless initialized;
  /// `invalid`: none given. A CPU that this process may not use makes the start fail. Where delivery is synchronous
  /// there is no such thread, and only that of notify() is bound.
  [[nodiscard]] Result<> confine(std::span<const unsigned> cpus);

  /// Buffer events will be delivered by deliver_all(), and there will be no event thread: start() starts by itself, and
  /// deliver_all(), pending(), wait(), wait_any() and arm() keep the deadlines, tell machine events, and make the last
  /// step of a stop. So call one of them until the machine is stopped, or stop_and_wait(). `bad_state` unless
  /// initialized.
  [[nodiscard]] Result<> deliver_synchronously();

  /// Messages will be received into buffers of a pool, which the engine takes by itself: `length` of them ahead, and
  /// more whenever a message would find no buffer, however late the application is with its events; so nothing is
  /// dropped as long as the pool has some. Buffers that are added for messages besides are filled in turn with them.
  ///
  /// A final event with status ok makes the buffer the application's, to be given back by BufferPool::put(), in the
  /// callback or later. One with another status (canceled: the machine stops) does not: the pool has it back after the
  /// callback. From stop() on the machine takes none, and those without a message go back, for either mode.
  /// Statistics count a buffer from its first event on.
  /// `bad_state` unless initialized. `invalid`: the pool is of another domain; no callback; size_min, messages_max or
  /// colour out of range.
  [[nodiscard]] Result<> attach(const BufferPool& pool, Provision provision);
  /// Changes Provision::length or ::colour, from the next buffer on that is taken; a smaller length takes none back.
  /// `bad_state`: no pool is attached, or the machine is neither initialized, starting nor started. `invalid`: the pool
  /// has no such colour.
  Status set_receive_length(std::uint32_t length);
  Status set_receive_colour(std::uint32_t colour);
  /// How many buffers of Provision::length are missing, as the pool had none. They are posted as soon as it has.
  std::uint32_t receive_deficit() const;

  /// A machine event of kind `statistics` will come every so often while the machine is started: its address, dropped
  /// messages, and to_record() of its statistics. `bad_state` unless initialized; `invalid`: not in 1 ms..1 day.
  Result<> report_statistics(Duration every);

  // ---- start and stop

  /// Takes an address (see address.hpp) and starts the event thread. That tells `started` with the machine's own end
  /// point, or `failed`: not_available (not local, or no tmid free), in_use, invalid (portal), system. Where delivery
  /// is synchronous that is told before this returns. `invalid`: malformed; the machine is failed then. `bad_state`
  /// unless initialized.
  [[nodiscard]] Result<> start(std::string_view address);
  /// start(), and waits for its outcome; returns the own end point. Not in a callback of this machine (bad_state).
  [[nodiscard]] Result<EndPoint> start_and_wait(std::string_view address);

  /// Stops within microseconds once the queues are empty. Of an initialized machine: stopped at once, the event is
  /// delivered by the caller. So it is where delivery is synchronous and nothing is queued; else go on delivering there
  /// until the machine is stopped, or use stop_and_wait().
  /// `bad_state` unless initialized, starting or started; stop(abort) also while stopping.
  Result<> stop(StopMode mode);
  /// stop(), and waits until stopped. Not in a callback of this machine (bad_state).
  Result<> stop_and_wait(StopMode mode);

  /// Ends the machine: `bad_state` (nothing changed) unless initialized, stopped or failed, and while the
  /// application still refers to any of its end points.
  Result<> close();

  MachineState state() const noexcept;
  /// Why the start failed; ok and empty unless failed.
  Error failure() const;

  // ---- end points

  /// The own end point; empty before `started`.
  [[nodiscard]] EndPoint end_point() const;
  /// The end point of another (or this) machine. `invalid`: malformed, `*`, or out of range. `unreachable`: of
  /// another network than this machine (`0@lo`, IPv4, IPv6). `bad_state` unless started. Sends nothing.
  [[nodiscard]] Result<EndPoint> create_end_point(std::string_view address);
  /// One line of what is known of the host behind an end point: when it was last heard, what is in flight.
  std::string describe(const EndPoint& end_point) const;
  /// The last events with that host, a line each, the oldest first, for a report (docs/flight-recorder.md). Empty if
  /// nothing is known.
  std::string describe_flight(const EndPoint& end_point) const;

  // ---- buffers

  /// Queues a buffer. ok promises one final event; on any other answer nothing has changed, and explain_last() tells
  /// why:
  ///
  /// - bad_state: the machine is not started, or the buffer is queued or closed
  /// - invalid: the buffer is of another domain or has no callback for this queue; a length, size_min or messages_max
  ///   is out of range; an end point is empty or of another machine; a descriptor is malformed or damaged
  /// - not_permitted: the descriptor is of the wrong kind of queue
  /// - too_big: active receive: shorter than the passive buffer's data; active send: longer than the passive buffer
  /// - unreachable: the descriptor is of another network than this machine
  /// - stale: the descriptor is of an earlier life of this machine's own address
  /// - too_late: the deadline has passed
  /// - message_size: longer than a message can be (message_size_max())
  /// - again: a bound of the engine is reached: deliver events, then try again
  /// - no_memory: no room for its events
  [[nodiscard]] Status add(Buffer& buffer, const MessageReceive& operation);
  [[nodiscard]] Status add(Buffer& buffer, const MessageSend& operation);
  [[nodiscard]] Status add(Buffer& buffer, const PassiveReceive& operation);
  [[nodiscard]] Status add(Buffer& buffer, const PassiveSend& operation);
  [[nodiscard]] Status add(Buffer& buffer, const ActiveReceive& operation);
  [[nodiscard]] Status add(Buffer& buffer, const ActiveSend& operation);

  /// Queues buffers in this order, up to the first that is refused, as add(*buffer, operation) would for each. One lock
  /// and one look at the clock serve all; it is for streams of small messages.
  struct Added {
    std::size_t count = 0;       ///< queued, from the first on; nothing has changed for the others
    Status status = Status::ok;  ///< why not more
  };
  [[nodiscard]] Added add(std::span<Buffer* const> buffers, const MessageSend& operation);
  /// The same of buffers that receive, or are exposed: each as by an add() of its own.
  [[nodiscard]] Added add(std::span<Buffer* const> buffers, const MessageReceive& operation) {
    return add_each(buffers, operation);
  }
  [[nodiscard]] Added add(std::span<Buffer* const> buffers, const PassiveReceive& operation) {
    return add_each(buffers, operation);
  }
  [[nodiscard]] Added add(std::span<Buffer* const> buffers, const PassiveSend& operation) {
    return add_each(buffers, operation);
  }

  /// Why the calling thread's last refused add() was refused, of any machine: its status, and one line. ok and empty if
  /// there was none.
  [[nodiscard]] static Error explain_last();

  /// Asks for the end of an operation (Motr's del). False if the buffer is not queued here (any more); true promises
  /// exactly one more final event of it: `canceled`, or its real outcome if that came first. Within milliseconds,
  /// whatever the peer does. A message that ended so arrives at most once, whole or not at all; its memory is not
  /// touched after its final event.
  bool cancel(Buffer& buffer);

  /// Largest message in bytes; 0 before `started`.
  std::uint64_t message_size_max() const noexcept;

  // ---- synchronous delivery

  /// Makes progress on this thread, then calls back for at most `budget` pending events; returns how many. 0 also
  /// if another thread, or a callback further up this stack, is delivering.
  /// `bad_state` unless started, or being stopped, and synchronous.
  std::expected<std::size_t, Status> deliver_all(std::size_t budget = 256);
  /// Makes progress; true if deliver_all() would find an event. False in a state where that is refused.
  bool pending();
  /// Waits until an event is pending or `deadline` passes: spins first, then sleeps. True if one is pending.
  /// `bad_state` as deliver_all(), and while another thread waits. Ends early (false) when the machine is stopped.
  std::expected<bool, Status> wait(Instant deadline);
  /// Waits until one of the machines has a pending event: its index. `timed_out`: none by `deadline`. Looks for some
  /// microseconds, then sleeps. `bad_state`: one cannot be armed, or is being stopped. `invalid`: no machines.
  /// None of them may be destroyed meanwhile.
  [[nodiscard]] static std::expected<std::size_t, Status> wait_any(std::span<TransferMachine* const> machines,
                                                                   Instant deadline);
  /// For the event loop of a program (poll, epoll, io_uring): descriptor() becomes readable with the first event after
  /// an arm() that answered true, and with a stop. False: events are pending, deliver them first. Only look at it;
  /// arm() makes it unreadable again:
  ///
  ///   while (machine.arm().value_or(false) == false) machine.deliver_all();   // then sleep on it
  ///
  /// It becomes readable for deadlines, too. `bad_state` as deliver_all(), while a thread waits, and after a notify()
  /// that was not called yet. The descriptor is the machine's, from `started` to `stopped`; -1 else. Whoever has it is
  /// waked by the stop, too: then it stays readable until the machine's destruction.
  [[nodiscard]] std::expected<bool, Status> arm();
  [[nodiscard]] int descriptor() const;
  /// `signal` will be called once, as soon as an event is pending (at once if one is already). Replaces an earlier one
  /// that was not called yet. `bad_state` as deliver_all(). The first notify() starts a thread, which calls and tells
  /// machine events meanwhile: wait(), or arm() with a program's own event loop, do without.
  [[nodiscard]] Status notify(std::function<void()> signal);

  // ---- figures

  /// A consistent snapshot; `reset` starts the counts anew in the same moment.
  Statistics statistics(bool reset = false);
  /// Messages that arrived while no queued buffer could take them, since the start.
  std::uint64_t messages_dropped() const;
  /// Counters of the engine that serves this machine; empty before `started`.
  std::vector<Counter> engine_counters() const;

 private:
  template <typename Operation>
  Added add_each(std::span<Buffer* const> buffers, const Operation& operation) {
    Added all;
    for (; all.count < buffers.size(); ++all.count) {
      all.status = add(*buffers[all.count], operation);
      if (all.status != Status::ok) break;
    }
    return all;
  }

  std::shared_ptr<Machine> machine_;
};

}  // namespace fairlead::net
