#pragma once
// Events of a transfer machine: completions of buffer operations, and changes of its own state (docs/net.md, "Events").

#include <cstdint>
#include <functional>
#include <string_view>

#include <fairlead/error.hpp>
#include <fairlead/net/end_point.hpp>
#include <fairlead/net/queue_kind.hpp>
#include <fairlead/time.hpp>

namespace fairlead::net {

class Buffer;
class Loan;
class TransferMachine;

/// The completion of an operation, or (is_final false) one message in a receive buffer that stays queued. Valid during
/// the callback; copy what the program needs later.
struct BufferEvent {
  Buffer& buffer;
  QueueKind queue = QueueKind::message_receive;  ///< the queue that the buffer was added to
  /// ok; canceled; timed_out (the deadline passed first); or the cause of the failure: stale, not_permitted, too_big,
  /// message_size, no_buffer (a message of more than 64 KiB or with is_confirmed), unreachable, silent, restarted,
  /// refused. An operation that succeeds before its deadline or cancellation takes effect is ok.
  Status status = Status::ok;
  /// True: the buffer belongs to the application again, which may add it again in this callback. False (only
  /// message_receive with status ok): the buffer stays queued. Until its final event the application may read only
  /// [offset, offset + length).
  bool is_final = true;
  std::uint64_t length = 0;  ///< bytes received, if an operation of a receive queue succeeded; else 0
  std::uint64_t offset = 0;  ///< message_receive: offset of the message in the buffer; else 0
  Instant time;              ///< when the engine completed it, accurate to a few microseconds
  const EndPoint& sender;    ///< message_receive with status ok: the sender; else empty. Copy it to keep it
  /// The transfer machine that the buffer was queued with; null if its handle was destroyed in a callback.
  TransferMachine* machine = nullptr;
  /// A message by reference: it lies in the sender's buffer, not in this one (MessageReceive::takes_loans). To keep the
  /// loan, move it out of the event; otherwise the library returns it after the callback. Null for all other messages.
  Loan* loan = nullptr;

  /// Bytes left for further messages in a buffer that stays queued; at least size_min. 0 for a final event, and for a
  /// message by reference.
  std::uint64_t room() const noexcept;
};

using BufferCallback = std::function<void(const BufferEvent&)>;

/// The states of a transfer machine. Motr defines the numbers.
enum class MachineState : std::uint8_t {
  undefined = 0,    ///< closed
  initialized = 1,  ///< constructed
  starting = 2,
  started = 3,
  stopping = 4,
  stopped = 5,
  failed = 6,  ///< could not start; the program can only close it
};

/// Returns "initialized", "starting", ......
std::string_view to_string(MachineState state) noexcept;

/// An event of the transfer machine itself. Valid during the callback.
struct MachineEvent {
  enum class Kind : std::uint8_t {
    /// `status` no_buffer: messages were dropped because no queued buffer could take them; one event covers some
    /// milliseconds. `status` restarted: the host engine has ended (docs/host.md), and the program can only stop this
    /// machine. With synchronous delivery the event comes with the next call that polls.
    error = 0,
    state_change = 1,  ///< to next_state: started, stopped, or failed with its cause in `status`
    /// `text` only. With `started`: domain settings without effect, since another domain of this process had already
    /// started the engine at this address.
    diagnostic = 2,
    /// The engine `peer`, of which this machine has end points, is lost. `status` is silent, restarted, refused or
    /// unreachable; pending operations with the peer end with it. The next message to the peer connects anew. For a
    /// peer of this host the event comes once per path in use (shared memory, network). With synchronous delivery it
    /// comes with the next call that polls.
    peer_gone = 3,
    statistics = 4,  ///< requested by TransferMachine::report_statistics(); `text` is a line of key=value pairs
  };
  Kind kind = Kind::state_change;
  TransferMachine& machine;
  Instant time;
  Status status = Status::ok;
  MachineState next_state = MachineState::undefined;  ///< state_change only
  const EndPoint& end_point;                          ///< with `started`: the machine's own end point; else empty
  std::string_view text;                              ///< failed, error, peer_gone: one line with cause and remedy
  /// peer_gone: "10.0.0.5@udp:20480", the common prefix of the addresses of the peer's end points.
  std::string_view peer = {};
};

using MachineCallback = std::function<void(const MachineEvent&)>;

}  // namespace fairlead::net
