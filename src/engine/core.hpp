#pragma once
// The interface of an engine for the layers above (net, verbs, am). The engine is embedded in this process or runs in
// the host's daemon (docs/host.md); the layers need not know which.
//
// Model: a layer opens a port, which has an event queue. It reserves events, then submits operations. Each accepted
// operation ends with exactly one final completion in that queue, so no event is ever lost or refused. The engine owns
// the memory of an operation, including the iovec array, until the final completion.
//
// Thread rules: any thread may make any call, except that [consumer] calls on one port must not overlap. No call runs
// code of the layers above. A submission sends at once where possible. The next thread that makes progress sends the
// rest: a poller, a waiter, or the engine's own thread.

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
#include "transport/peer_facts.hpp"

namespace fairlead::engine {

/// A buffer for messages of any sender; messages take the first buffer with room (LNet's attached MD). It ends when
/// less than `size_min` bytes remain, after `messages_max` messages, or by cancel. It yields up to messages_max
/// completions.
struct Receive {
  std::span<const iovec> memory;
  std::uint64_t size_min = 0;
  std::uint32_t messages_max = 1;
  bool takes_loans = false;  // messages by reference are not copied; they count as messages but take no room
  std::uint64_t cookie = 0;
};

using link::SendPart;

/// A message to a port. Completes with `ok` when the peer's engine has acknowledged it, even if no buffer took it
/// there.
struct Send {
  RemotePort to;
  link::SendPart part;
  base::Instant now{};        // the caller's fresh clock reading, if any; saves another one
  bool is_loan = false;       // the receiver may read it in place; it then completes when the receiver gives it back
  bool is_confirmed = false;  // completes when the target has reported whether a buffer took it
};

/// Memory for one put (is_writable) or one get by whoever knows the key. Completes when that transfer is done.
struct Exposure {
  std::span<const iovec> memory;
  std::uint64_t length = 0;
  bool is_writable = false;
  std::uint64_t cookie = 0;
};

/// A put to, or get from, exposed memory of another port. Completes when the data is placed and, for a put, the target
/// engine has acknowledged it. If the target refuses, the status is stale, not_permitted or too_big.
struct Transfer {
  RemotePort target;
  std::uint64_t target_epoch = 0;  // the life of the engine to which the key belongs
  std::uint64_t key = 0;
  std::span<const iovec> memory;
  std::uint64_t length = 0;  // bytes of the memory to transfer
  std::uint64_t cookie = 0;
  /// Longer ones are asked for even if we could do them by ourselves, in the memory of a peer of this host: that is
  /// done in one go.
  std::uint64_t carried_out_max = UINT64_MAX;
};

/// A message by reference, in the sender's memory.
struct LoanView {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> memory;  // keeps the bytes readable
};

class Core {
 public:
  virtual ~Core() = default;

  /// The address at which peers reach this engine, and the 64 random bits that identify its life.
  virtual base::SocketAddress address() const = 0;
  virtual std::uint64_t epoch() const = 0;
  /// Returns whether the engine belonged to another process that has ended. Every pending and later operation ends with
  /// `restarted`. Waits on its ports end, too.
  virtual bool has_ended() const { return false; }
  /// Returns the options of the process's first attachment, with which the engine was made. Null if it has none.
  virtual const EngineOptions* options() const { return nullptr; }
  /// Returns the largest message size; send() refuses larger ones with message_size.
  virtual std::uint64_t message_size_max() const = 0;

  /// Opens a port. Returns `in_use` if this engine has that number already.
  virtual Result<PortHandle> open_port(std::uint32_t number) = 0;
  /// Opens the highest free number in [first, first + count) and stores it in `number`. Returns `not_available` if none
  /// is free.
  virtual Result<PortHandle> open_port_dynamic(std::uint32_t first, std::uint32_t count, std::uint32_t& number) = 0;
  /// Cancels pending operations and closes the port. Blocks until no memory of the port is referenced any more, at most
  /// for the give-up time. Undelivered events are lost.
  virtual void close_port(PortHandle port) = 0;

  /// [consumer] Reserves room for `count` more events. Call before submitting an operation. Returns `no_memory` at the
  /// limit.
  virtual Status reserve_events(PortHandle port, std::uint32_t count) = 0;
  /// [consumer] Releases room after the final completion.
  virtual void release_events(PortHandle port, std::uint32_t count) = 0;

  /// Submissions return ok, or again / no_memory / invalid / message_size / stale (port) if nothing was taken.
  virtual Status post_receive(PortHandle port, const Receive& receive, OperationHandle& operation) = 0;
  /// Makes the port post spares by itself, each as a Receive according to the plan. It posts as many as the plan wants
  /// ahead, and more when a message finds no buffer, within what is granted. Completions identify spares by their
  /// cookies. A plan without spares ends this and cancels posted ones. Setting the same plan again checks for new
  /// spares.
  virtual void set_spares(PortHandle port, const SparePlan& plan) = 0;
  /// [consumer] Permits posting so many more spares, for each of which messages_max events are reserved. Each posted
  /// spare uses up one grant. After its final completion, grant it again or release its events.
  virtual void grant_spares(PortHandle port, std::uint32_t count) = 0;
  virtual SpareCounts spare_counts(PortHandle port) const = 0;
  virtual Status send(PortHandle port, const Send& send, OperationHandle& operation) = 0;
  /// Sends the parts in order, as send() does, up to the first that is refused. Returns how many were accepted;
  /// `status` says why not more. `operations` must have room for all.
  virtual std::size_t send_all(PortHandle port, const RemotePort& to, std::span<const link::SendPart> parts,
                               std::span<OperationHandle> operations, Status& status) = 0;
  virtual Status expose(PortHandle port, const Exposure& exposure, OperationHandle& operation, std::uint64_t& key) = 0;
  virtual Status put(PortHandle port, const Transfer& transfer, OperationHandle& operation) = 0;
  virtual Status get(PortHandle port, const Transfer& transfer, OperationHandle& operation) = 0;

  /// Requests an early end. Returns false if the operation has completed already. Otherwise its final completion
  /// follows, with `canceled` or an earlier real result.
  virtual bool cancel(PortHandle port, OperationHandle operation) = 0;

  /// Returns the message of a completion with is_loan, valid until it is given back. Thread-safe.
  virtual LoanView loan(std::uint64_t) { return {}; }
  /// Returns a loan to its sender. Closing the port returns all loans.
  virtual void give_back(PortHandle, std::uint64_t) {}

  /// Makes one pass over paths, reactions, sends and timers, unless another thread does. Returns true if anything
  /// happened.
  virtual bool progress() = 0;
  /// Call after a poll found nothing, if polling repeatedly: may yield the processor to others, for a millisecond at
  /// most. The caller must hold no lock.
  virtual void give_way() {}
  /// [consumer] Takes available events of the port, up to the size of `to`. Returns how many. Makes no progress.
  virtual std::size_t next_events(PortHandle port, std::span<Completion> to) = 0;
  /// [consumer] Does progress(), then next_events(). New events may bypass the queue.
  virtual std::size_t poll(PortHandle port, std::span<Completion> to) {
    progress();
    return next_events(port, to);
  }
  bool next_event(PortHandle port, Completion& completion) { return next_events(port, {&completion, 1}) == 1; }
  /// Returns whether next_event() would find one. Thread-safe.
  virtual bool has_event(PortHandle port) const = 0;
  /// Waits until the port has an event, is interrupted, or `deadline` passes. Makes progress meanwhile; spins first,
  /// then sleeps (docs/engine.md). Returns true if there is an event. One waiter per port at a time. It may overlap
  /// with [consumer] calls of other threads, so that a submission need not wait for a sleeper.
  virtual bool wait(PortHandle port, base::Instant deadline) = 0;
  /// Ends the current wait() on this port, or the next one if there is none. Thread-safe.
  virtual void interrupt(PortHandle port) = 0;
  /// Becomes readable with the first event or interrupt() after arm_descriptor(), until that is called again. For an
  /// application's own epoll loop.
  virtual int descriptor(PortHandle port) const = 0;
  /// Returns false if an event is available already (do not sleep). Must not overlap with a wait().
  virtual bool arm_descriptor(PortHandle port) = 0;

  /// Allocates zeroed memory in whole pages, in which local peers can put and get exposed memory directly. Returns null
  /// if there is none. The memory outlives the engine. The function does, too, and then returns null.
  using AllocateShared = std::function<std::shared_ptr<std::byte>(std::uint64_t)>;
  virtual AllocateShared allocate_shared() { return {}; }

  /// Returns the interface for queue pairs; null if not supported.
  virtual qp::PairCore* pairs() { return nullptr; }
  /// Returns the interface for active messages; null if not supported.
  virtual ActivePorts* active_ports() { return nullptr; }

  /// Tells all peers that this engine ends, and waits briefly until they know. Afterwards it meets no peers. For
  /// processes that exit without destructors, which also do this. Thread-safe.
  virtual void take_leave() {}

  /// The next message dropped for lack of a posted buffer ends a wait() on this port, as interrupt() does; later drops
  /// do not. The caller then reads the count and calls this again. Thread-safe.
  virtual void watch_drops(PortHandle port) = 0;
  /// From now on, each lost peer ends a wait() on this port, as interrupt() does. ActivePorts::next_loss() tells which.
  /// Thread-safe.
  virtual void watch_losses(PortHandle) {}
  /// Returns how many messages were dropped for lack of a posted buffer since the port was opened.
  virtual std::uint64_t dropped_no_buffer(PortHandle port) const = 0;
  /// Returns counters and facts of the engine, its path and each peer, for statistics and error texts. The snapshot is
  /// bounded.
  virtual observe::EngineFacts facts() const = 0;
  /// Returns what is known of a peer, for an error text: "no ack from ... for 2.1 s (...)". Empty if it was never met.
  std::string describe_peer(const base::SocketAddress& address) const { return describe_failure(address, Status::ok); }
  /// Returns why an operation with a peer ended with `status`, as describe_peer(). Empty if the engine there is alive
  /// and itself refused the operation: nothing has that port.
  virtual std::string describe_failure(const base::SocketAddress& address, Status status) const = 0;
  /// Returns what programs may decide by about a peer.
  virtual transport::PeerFacts peer_facts(const base::SocketAddress& address) const = 0;
  /// Returns the last events with a peer, one line each, oldest first. Empty if nothing is known.
  virtual std::string describe_flight(const base::SocketAddress&) const { return {}; }
};

/// Returns the address that stands for this process itself (0@lo).
inline base::SocketAddress lo(std::uint16_t port) {
  return {.ip = {}, .scope = 0, .port = port};
}

}  // namespace fairlead::engine
