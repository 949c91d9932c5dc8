#pragma once
// A transfer machine is an address with six queues of buffers, for messages and bulk transfers (docs/net.md).

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
#include <fairlead/net/peer_facts.hpp>
#include <fairlead/net/statistics.hpp>
#include <fairlead/time.hpp>

namespace fairlead::net {

/// Receives messages from any sender. Buffers are filled in the order in which they were added; each message is placed
/// directly behind the previous one. The buffer completes (final event) when fewer than `size_min` bytes are left or
/// `messages_max` messages have arrived. A message that does not fit into the rest of one buffer goes to the next
/// buffer that can take it; if there is none, it is dropped and counted. So set size_min to the size of the largest
/// expected message.
struct MessageReceive {
  std::uint64_t size_min = kWholeBuffer;  ///< bytes, 1..Buffer::size()
  std::uint32_t messages_max = 1;         ///< 1..kMessagesInBufferMax
  Instant deadline = kNever;              ///< of the whole buffer
  /// Messages by reference arrive as BufferEvent::loan. They count as messages, but take no room in the buffer. All
  /// other messages are copied into the buffer, and so is each one without takes_loans: look at the event.
  bool takes_loans = false;
};
inline constexpr std::uint32_t kMessagesInBufferMax = 4096;

/// Sends one message: the first `length` bytes of the buffer. Success means that the peer's engine has received the
/// message. It does not mean that a buffer was there to take it: the receiver counts messages without a buffer in
/// TransferMachine::messages_dropped(). If the engine has no such transfer machine, the message fails with `refused`
/// (over the network, unless its acknowledgement comes first). If the message is longer than 64 KiB and no buffer there
/// can take it, it fails with `no_buffer` before it is sent in full.
struct MessageSend {
  Destination to{};                     ///< an EndPoint that the same transfer machine created
  std::uint64_t length = kWholeBuffer;  ///< bytes, 1..Buffer::size()
  Instant deadline = kNever;
  /// Sends the message by reference: a receiver on this host reads it in place, if Buffer::allocate() made the buffer
  /// after the machine's start. The final event comes when the receiver has returned the loan (refused: the receiver
  /// has ended; silent: it was given up). All other receivers get a copy. If the program cancels the buffer, it gets
  /// the buffer back even though the receiver may still read it.
  bool is_loan = false;
  /// The event waits for the receiver's confirmation: ok if a buffer took the message, else no_buffer or refused. This
  /// takes a round trip. Such a message is never sent by reference.
  bool is_confirmed = false;
};

/// Permits the holder of Buffer::descriptor() to write the buffer once.
struct PassiveReceive {
  Instant deadline = kNever;
};

/// Permits the holder of Buffer::descriptor() to read the first `length` bytes once.
struct PassiveSend {
  std::uint64_t length = kWholeBuffer;  ///< bytes, 1..Buffer::size()
  Instant deadline = kNever;
};

/// Reads the data of the passive_bulk_send buffer that the descriptor names. This buffer must be large enough for all
/// of it.
struct ActiveReceive {
  std::span<const std::byte> descriptor;  ///< kDescriptorSize bytes; not needed after add()
  Instant deadline = kNever;
};

/// Writes the first `length` bytes to the passive_bulk_receive buffer that the descriptor names. That buffer must be
/// large enough.
struct ActiveSend {
  std::span<const std::byte> descriptor;  ///< kDescriptorSize bytes; not needed after add()
  std::uint64_t length = kWholeBuffer;    ///< bytes, 1..Buffer::size()
  Instant deadline = kNever;
};

/// What stop() does with queued buffers.
enum class StopMode : std::uint8_t {
  drain,  ///< waits until each has completed
  abort,  ///< cancels them
};

class Machine;

/// Events refer to a transfer machine by its address, so it does not move. States:
///
///   initialized --start--> starting --> started --stop--> stopping --> stopped
///        |                     \------> failed
///        \--stop--> stopped                            close: any of initialized, stopped, failed --> undefined
///
/// One event reports each change to started, stopped or failed. If the address is malformed, start() fails at once,
/// without an event. A stop() while starting takes effect right after `started`.
class TransferMachine {
 public:
  /// `on_event` may be empty. The state is initialized, or undefined if the domain is closed.
  explicit TransferMachine(Domain& domain, MachineCallback on_event = {});
  TransferMachine(const TransferMachine&) = delete;
  TransferMachine& operator=(const TransferMachine&) = delete;
  /// Stops a running machine as stop(abort) does, and waits until it has stopped; events until then are delivered. In a
  /// callback of the machine itself it does not wait: the stop then completes after the callback, without machine
  /// events.
  ~TransferMachine();

  // ---- before the start

  /// Binds the event thread to these CPUs; replaces an earlier choice. `bad_state` unless initialized; `invalid`: no
  /// CPU given. If this process may not use one of the CPUs, the start fails. A machine with synchronous delivery has
  /// no event thread; then this binds only the thread of notify().
  [[nodiscard]] Result<> confine(std::span<const unsigned> cpus);

  /// Selects synchronous delivery: deliver_all() delivers buffer events, and the machine has no event thread. start()
  /// completes the start before it returns. deliver_all(), pending(), wait(), wait_any() and arm() check deadlines,
  /// deliver machine events and complete a stop. So call one of them until the machine is stopped, or call
  /// stop_and_wait(). `bad_state` unless initialized.
  [[nodiscard]] Result<> deliver_synchronously();

  /// Receives messages into buffers of a pool. The engine keeps `length` of them posted. It takes more whenever a
  /// message would find no buffer, even if the application handles its events late. So no message is dropped while the
  /// pool has buffers. Receive buffers that the program adds itself are filled in turn with those of the pool.
  ///
  /// After a final event with status ok the buffer belongs to the application, which returns it with BufferPool::put(),
  /// in the callback or later. After a final event with another status (canceled: the machine stops) the pool takes the
  /// buffer back by itself. After stop(), in either mode, the machine takes no more buffers and returns those without a
  /// message. Statistics count a buffer from its first event on.
  ///
  /// `bad_state` unless initialized. `invalid`: the pool is of another domain; there is no callback; size_min,
  /// messages_max or colour is out of range.
  [[nodiscard]] Result<> attach(const BufferPool& pool, Provision provision);
  /// Change Provision::length or ::colour for the buffers that the engine takes from now on. A smaller length does not
  /// return posted buffers. `bad_state`: no pool is attached, or the machine is not initialized, starting or started.
  /// `invalid`: the pool has no such colour.
  [[nodiscard]] Status set_receive_length(std::uint32_t length);
  [[nodiscard]] Status set_receive_colour(std::uint32_t colour);
  /// How many buffers of Provision::length are missing because the pool is empty. The engine posts them as soon as the
  /// pool has buffers.
  std::uint32_t receive_deficit() const;

  /// Requests a machine event of kind `statistics` at this interval while the machine is started. Its text holds the
  /// address, the dropped messages, and to_record() of the statistics. `bad_state` unless initialized; `invalid`: not
  /// in 1 ms..1 day.
  [[nodiscard]] Result<> report_statistics(Duration every);

  // ---- start and stop

  /// Takes an address (see address.hpp) and starts the event thread, which then delivers one machine event. That is
  /// `started`, with the machine's own end point, or `failed`: not_available (the address is not local, or no tmid is
  /// free), in_use, invalid (portal), system. With synchronous delivery the event is delivered before start() returns.
  /// `invalid`: the address is malformed; the machine is then failed. `bad_state` unless initialized.
  [[nodiscard]] Result<> start(std::string_view address);
  /// Calls start(), waits for its outcome, and returns the machine's own end point. `bad_state` in a callback of this
  /// machine.
  [[nodiscard]] Result<EndPoint> start_and_wait(std::string_view address);

  /// Stops the machine within microseconds once its queues are empty. An initialized machine stops at once, and the
  /// caller's thread delivers the event. The same holds with synchronous delivery if no buffer is queued. Otherwise,
  /// with synchronous delivery, go on delivering until the machine is stopped, or use stop_and_wait(). `bad_state`
  /// unless initialized, starting or started; stop(abort) is also allowed while stopping.
  [[nodiscard]] Result<> stop(StopMode mode);
  /// Calls stop() and waits until the machine is stopped. `bad_state` in a callback of this machine.
  Result<> stop_and_wait(StopMode mode);

  /// Closes the machine. `bad_state` (nothing changed) unless initialized, stopped or failed, and while the application
  /// still holds references to its end points.
  Result<> close();

  MachineState state() const noexcept;
  /// Why the start failed; status ok and an empty line unless failed.
  Error failure() const;

  // ---- end points

  /// The machine's own end point; empty before `started`.
  [[nodiscard]] EndPoint end_point() const;
  /// Returns the end point of another (or this) machine. Sends nothing. `invalid`: the address is malformed, contains
  /// `*`, or is out of range. `unreachable`: it is of another network than this machine (`0@lo`, IPv4, IPv6).
  /// `bad_state` unless started.
  [[nodiscard]] Result<EndPoint> create_end_point(std::string_view address);
  /// One line about the host behind an end point: when it was last heard from, what is in flight.
  [[nodiscard]] std::string describe(const EndPoint& end_point) const;
  /// One line that explains why an operation with an end point ended with `status`: what happened to its host, or that
  /// there is no such transfer machine, receive buffer or passive buffer.
  [[nodiscard]] std::string describe(const EndPoint& end_point, Status status) const;
  /// What a program may decide by, where describe() is for people: why an operation with the end point ended with
  /// `status`, and what is known of its host.
  [[nodiscard]] PeerFacts peer_facts(const EndPoint& end_point, Status status) const;
  /// The last events with that host for a report, one per line, oldest first (docs/flight-recorder.md). Empty if there
  /// are none.
  std::string describe_flight(const EndPoint& end_point) const;

  // ---- buffers

  /// Queues a buffer. ok guarantees one final event. With any other status nothing has changed, and explain_last()
  /// gives the reason:
  ///
  /// - bad_state: the machine is not started, or the buffer is queued or closed
  /// - invalid: the buffer is of another domain or has no callback for this queue; a length, size_min or messages_max
  ///   is out of range; an end point is empty or of another machine; a descriptor is malformed or damaged
  /// - not_permitted: the descriptor is of the wrong kind of queue
  /// - too_big: active receive: shorter than the passive buffer's data; active send: longer than the passive buffer
  /// - unreachable: the descriptor belongs to another network than this machine
  /// - stale: the descriptor belongs to an earlier incarnation of this machine's own address
  /// - too_late: the deadline has passed
  /// - message_size: the message is longer than message_size_max()
  /// - again: an engine limit is reached: deliver events, then try again
  /// - no_memory: no memory for its events
  [[nodiscard]] Status add(Buffer& buffer, const MessageReceive& operation);
  [[nodiscard]] Status add(Buffer& buffer, const MessageSend& operation);
  [[nodiscard]] Status add(Buffer& buffer, const PassiveReceive& operation);
  [[nodiscard]] Status add(Buffer& buffer, const PassiveSend& operation);
  [[nodiscard]] Status add(Buffer& buffer, const ActiveReceive& operation);
  [[nodiscard]] Status add(Buffer& buffer, const ActiveSend& operation);

  /// Queues buffers in this order, as add(*buffer, operation) would, up to the first one that is refused. It takes the
  /// lock only once. For message sends it also reads the clock only once.
  struct Added {
    std::size_t count = 0;       ///< how many were queued; nothing has changed for the others
    Status status = Status::ok;  ///< why the next one was refused
  };
  [[nodiscard]] Added add(std::span<Buffer* const> buffers, const MessageReceive& operation);
  [[nodiscard]] Added add(std::span<Buffer* const> buffers, const MessageSend& operation);
  [[nodiscard]] Added add(std::span<Buffer* const> buffers, const PassiveReceive& operation);
  [[nodiscard]] Added add(std::span<Buffer* const> buffers, const PassiveSend& operation);
  /// The same for transfers. operations[i] is that of buffers[i], because a descriptor serves once. `invalid`: not as
  /// many operations as buffers; nothing was queued.
  [[nodiscard]] Added add(std::span<Buffer* const> buffers, std::span<const ActiveReceive> operations);
  [[nodiscard]] Added add(std::span<Buffer* const> buffers, std::span<const ActiveSend> operations);

  /// Why the last refused add() of the calling thread was refused, on any machine: its status and one line. ok and
  /// empty if none was refused.
  [[nodiscard]] static Error explain_last();

  /// Cancels an operation (`del` in Motr). False: the buffer is not, or no longer, queued here. True guarantees exactly
  /// one final event within milliseconds, whatever the peer does: `canceled`, or the actual result if the operation
  /// finished first. A cancelled message arrives at most once, as a whole or not at all. The engine does not touch the
  /// memory after the final event.
  bool cancel(Buffer& buffer);

  /// Largest message in bytes; 0 before `started`.
  std::uint64_t message_size_max() const noexcept;

  // ---- synchronous delivery

  /// Makes progress on this thread, then delivers at most `budget` pending events and returns how many. Also returns 0
  /// while another thread, or a callback further up this stack, delivers. `bad_state` unless the machine is started or
  /// stopping, and delivers synchronously.
  std::expected<std::size_t, Status> deliver_all(std::size_t budget = 256);
  /// Makes progress; true if an event is pending. False in a state in which deliver_all() returns `bad_state`.
  bool pending();
  /// Waits until an event is pending or `deadline` passes; it spins first, then sleeps. True if an event is pending.
  /// False at the deadline, or earlier if the machine is stopped. `bad_state` as for deliver_all(), and while another
  /// thread waits.
  std::expected<bool, Status> wait(Instant deadline);
  /// Waits until one of the machines has a pending event, and returns its index. It spins for some microseconds, then
  /// sleeps. `timed_out`: no event by `deadline`. `bad_state`: a machine cannot be armed, or is stopping. `invalid`: no
  /// machines. Do not destroy any of the machines during the call.
  [[nodiscard]] static std::expected<std::size_t, Status> wait_any(std::span<TransferMachine* const> machines,
                                                                   Instant deadline);
  /// For the event loop of a program (poll, epoll, io_uring). After arm() has returned true, descriptor() becomes
  /// readable with the next event, and with a stop. False: events are pending; deliver them first. Do not read from the
  /// descriptor; arm() makes it unreadable again:
  ///
  ///   while (machine.arm().value_or(false) == false) machine.deliver_all();   // then sleep on it
  ///
  /// It also becomes readable when a deadline passes. `bad_state` as for deliver_all(), while a thread waits, and while
  /// a notify() is pending. The machine owns the descriptor, from `started` to `stopped`; otherwise it is -1. A stop
  /// also wakes those that sleep on the descriptor: it then stays readable until the machine's destruction.
  [[nodiscard]] std::expected<bool, Status> arm();
  [[nodiscard]] int descriptor() const;
  /// Calls `signal` once, as soon as an event is pending (at once if one already is). Replaces an earlier signal that
  /// was not called yet. `bad_state` as for deliver_all(). The first notify() starts a thread, which calls `signal` and
  /// delivers machine events. wait(), and arm() with the program's own event loop, need no thread.
  [[nodiscard]] Status notify(std::function<void()> signal);

  // ---- figures

  /// A consistent snapshot; `reset` also sets the counts to zero, atomically.
  Statistics statistics(bool reset = false);
  /// Messages that arrived while no queued buffer could take them, since the start.
  std::uint64_t messages_dropped() const;
  /// Counters of the engine that serves this machine; empty before `started`.
  std::vector<Counter> engine_counters() const;

 private:
  std::shared_ptr<Machine> machine_;
};

}  // namespace fairlead::net
