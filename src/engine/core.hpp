#pragma once
// What a face (net, verbs, am) may ask of an engine, embedded in this process or in the host's daemon
// (docs/host.md). The faces cannot tell which one answers.
//
// Model. A face opens a port and gets an event queue with it. It reserves events, then submits operations; each
// accepted operation ends in exactly one final completion in that queue, so an event is never lost or refused.
// Memory named by an operation belongs to the engine until its final completion; the iovec arrays too.
//
// Thread rules. Every call may come from any thread, except that the calls marked [consumer] of one port must not
// overlap. No call runs code of the face. Submitting sends at once where it can; what it could not send is sent by
// whoever makes progress next: a poller, a waiter, or the engine's own thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <sys/uio.h>

#include <fairlead/error.hpp>

#include "base/time.hpp"
#include "engine/active.hpp"
#include "engine/completion.hpp"
#include "engine/engine_options.hpp"
#include "engine/handles.hpp"
#include "engine/spare_receives.hpp"
#include "link/send_part.hpp"
#include "observe/facts.hpp"
#include "qp/pair_core.hpp"

namespace fairlead::engine {

/// A buffer for messages of any sender, matched first come first served (LNet's attached MD).
/// Ends when less than `size_min` bytes remain, or `messages_max` have arrived, or by cancel. Up to messages_max
/// completions.
struct Receive {
  std::span<const iovec> memory;
  std::uint64_t size_min = 0;
  std::uint32_t messages_max = 1;
  bool takes_loans = false;  // messages that are lent are not copied; those count, but take no room
  std::uint64_t cookie = 0;
};

using link::SendPart;

/// A message to a port. Completes `ok` when the peer's engine has it (acknowledged), also if nobody took it there.
struct Send {
  RemotePort to;
  link::SendPart part;
  base::Instant now{};        // if the caller has just asked its clock: saves asking again
  bool is_loan = false;       // may be read where it lies; then it completes when it is given back
  bool is_confirmed = false;  // completes when the target has told whether a buffer took it
};

/// Memory for one put (is_writable) or one get (otherwise) by whoever knows the key. Completes when that is done.
struct Exposure {
  std::span<const iovec> memory;
  std::uint64_t length = 0;
  bool is_writable = false;
  std::uint64_t cookie = 0;
};

/// A put into, or a get out of, exposed memory of another port. Completes when the data is placed and (put) so
/// acknowledged by the target engine, or with its refusal: stale, not_permitted, too_big.
struct Transfer {
  RemotePort target;
  std::uint64_t target_epoch = 0;  // the engine's life that the key belongs to
  std::uint64_t key = 0;
  std::span<const iovec> memory;
  std::uint64_t length = 0;  // of the memory, from its start
  std::uint64_t cookie = 0;
};

/// A message that is read where its sender has written it.
struct LoanView {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> memory;  // keeps them readable
};

class Core {
 public:
  virtual ~Core() = default;

  /// What peers use to reach this engine, and the 64 random bits that name its life.
  virtual base::SocketAddress address() const = 0;
  virtual std::uint64_t epoch() const = 0;
  /// Whether it is of another process, and that has ended: every operation ends `restarted`, also each later one. The
  /// waits of its ports end then, too.
  virtual bool has_ended() const { return false; }
  /// Those that it was made with: of whoever attached first. Null if it has none.
  virtual const EngineOptions* options() const { return nullptr; }
  /// Message size above which send is refused (message_size).
  virtual std::uint64_t message_size_max() const = 0;

  /// Opens a port: in_use if the number is taken here.
  virtual Result<PortHandle> open_port(std::uint32_t number) = 0;
  /// Opens the highest free number of [first, first + count), not_available if there is none; `number` tells which.
  virtual Result<PortHandle> open_port_dynamic(std::uint32_t first, std::uint32_t count, std::uint32_t& number) = 0;
  /// Cancels what is still there and closes; blocks until no memory of the port is referenced any more (bounded by the
  /// give-up time). Its undelivered events are gone.
  virtual void close_port(PortHandle port) = 0;

  /// [consumer] Makes room for `count` more events, before an operation is submitted; no_memory at the bound.
  virtual Status reserve_events(PortHandle port, std::uint32_t count) = 0;
  /// [consumer] Gives room back, after the final completion.
  virtual void release_events(PortHandle port, std::uint32_t count) = 0;

  /// Submissions: ok, or again / no_memory / invalid / message_size / stale (port) and nothing was taken.
  virtual Status post_receive(PortHandle port, const Receive& receive, OperationHandle& operation) = 0;
  /// From now on the port posts spares by itself, each as a Receive of the plan: as many as it wants ahead, and more
  /// when a message finds no buffer; all within what is granted. Their completions name them by their cookies. A plan
  /// without spares ends it, and cancels those that are posted. The same plan again: looks whether there are more now.
  virtual void set_spares(PortHandle port, const SparePlan& plan) = 0;
  /// [consumer] So many more spares may be posted; the room for their events (messages_max of each) is reserved. One
  /// is used up with each that is posted: grant it again, or release its events, after its final completion.
  virtual void grant_spares(PortHandle port, std::uint32_t count) = 0;
  virtual SpareCounts spare_counts(PortHandle port) const = 0;
  virtual Status send(PortHandle port, const Send& send, OperationHandle& operation) = 0;
  /// As send() of each part, in this order, up to the first that is not taken: how many were, and why not more.
  /// `operations` has room for all.
  virtual std::size_t send_all(PortHandle port, const RemotePort& to, std::span<const link::SendPart> parts,
                               std::span<OperationHandle> operations, Status& status) = 0;
  virtual Status expose(PortHandle port, const Exposure& exposure, OperationHandle& operation, std::uint64_t& key) = 0;
  virtual Status put(PortHandle port, const Transfer& transfer, OperationHandle& operation) = 0;
  virtual Status get(PortHandle port, const Transfer& transfer, OperationHandle& operation) = 0;

  /// Asks for an early end. False if the operation has already completed; true promises that its final completion
  /// comes, `canceled` or with the real result if that came first.
  virtual bool cancel(PortHandle port, OperationHandle operation) = 0;

  /// Of a completion with is_loan, until it is given back. Any thread.
  virtual LoanView loan(std::uint64_t) { return {}; }
  /// Its sender may have it back. Closing the port gives back all.
  virtual void give_back(PortHandle, std::uint64_t) {}

  /// One pass over paths, reactions, sends and timers, if nobody else is at it. True if anything happened.
  virtual bool progress() = 0;
  /// After a poll in vain, by whoever polls again and again: may give the processor to others that want it, for a
  /// millisecond at most. The caller holds no lock.
  virtual void give_way() {}
  /// [consumer] Takes the next events of the port, as many as there are and `to` holds; how many. Does not make
  /// progress.
  virtual std::size_t next_events(PortHandle port, std::span<Completion> to) = 0;
  /// [consumer] progress(), then next_events(), where what happens meanwhile need not go through the queue.
  virtual std::size_t poll(PortHandle port, std::span<Completion> to) {
    progress();
    return next_events(port, to);
  }
  bool next_event(PortHandle port, Completion& completion) { return next_events(port, {&completion, 1}) == 1; }
  /// Whether next_event() would find one. Any thread.
  virtual bool has_event(PortHandle port) const = 0;
  /// Waits until the port has an event, was interrupted, or `deadline` passed; makes progress meanwhile; spins first,
  /// then sleeps (docs/engine.md). True if there is an event. One waiter per port at a time; it may overlap with the
  /// [consumer] calls of other threads, so that a submission need not wait for a sleeper.
  virtual bool wait(PortHandle port, base::Instant deadline) = 0;
  /// Ends a wait() on this port now, or the next one if none is under way. Any thread.
  virtual void interrupt(PortHandle port) = 0;
  /// Readable from the first event or interrupt() after arm_descriptor() on, until that is called again; for foreign
  /// epoll loops.
  virtual int descriptor(PortHandle port) const = 0;
  /// False if an event is there already (do not sleep). Not beside a wait().
  virtual bool arm_descriptor(PortHandle port) = 0;

  /// Makes zeroed memory of so many bytes, in whole pages, in which peers of this host put and get by themselves what
  /// is exposed; null if there is none to be had. It outlives the engine; so does this function, which then makes none.
  using AllocateShared = std::function<std::shared_ptr<std::byte>(std::uint64_t)>;
  virtual AllocateShared allocate_shared() { return {}; }

  /// What this engine offers for queue pairs; null if nothing.
  virtual qp::PairCore* pairs() { return nullptr; }
  /// What this engine offers for active messages; null if nothing.
  virtual ActivePorts* active_ports() { return nullptr; }

  /// Tells all peers that this engine ends, and waits a moment until they know; then nobody is met any more. For those
  /// who end the process without destructors, which do it, too. Any thread.
  virtual void take_leave() {}

  /// The next message that is dropped for lack of a posted buffer ends a wait() on this port, as interrupt() does; the
  /// ones after it do not. Look at the count then, and after this call. Any thread.
  virtual void watch_drops(PortHandle port) = 0;
  /// From now on each peer that is lost ends a wait() on this port, as interrupt() does (ActivePorts::next_loss tells
  /// which). Any thread.
  virtual void watch_losses(PortHandle) {}
  /// Messages dropped at this port for lack of a posted buffer, since it was opened.
  virtual std::uint64_t dropped_no_buffer(PortHandle port) const = 0;
  /// Counters and facts of the whole engine, of its path and of each peer (bounded snapshot), for statistics and error
  /// texts.
  virtual observe::EngineFacts facts() const = 0;
  /// What is known of one peer, for an error text: "no ack from ... for 2.1 s (...)". Empty if never met.
  virtual std::string describe_peer(const base::SocketAddress& address) const = 0;
  /// The last events with one peer, a line each, the oldest first. Empty if nothing is known.
  virtual std::string describe_flight(const base::SocketAddress&) const { return {}; }
};

/// The address that stands for this process itself (0@lo).
inline base::SocketAddress lo(std::uint16_t port) {
  return {.ip = {}, .scope = 0, .port = port};
}

}  // namespace fairlead::engine
