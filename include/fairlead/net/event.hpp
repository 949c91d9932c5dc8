#pragma once
// What a transfer machine tells: ends of buffer operations, and changes of its own state (docs/net.md, "Events").

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

/// The end of an operation, or (is_final false) one message of a receive buffer that stays queued.
/// Valid during the callback; copy what has to stay.
struct BufferEvent {
  Buffer& buffer;
  QueueKind queue = QueueKind::message_receive;  ///< where the buffer was added
  /// ok; canceled; timed_out (the deadline came first); or why it failed: stale, not_permitted, too_big, message_size,
  /// unreachable, silent, restarted, refused. A success that races with a deadline or a cancel stays ok.
  Status status = Status::ok;
  /// True: the buffer is the application's again, and may be added anew in this very callback. False (only
  /// message_receive, status ok): it stays queued, and just [offset, offset + length) may be read until its final
  /// event.
  bool is_final = true;
  std::uint64_t length = 0;  ///< bytes received: on success of one of the three receive queues, else 0
  std::uint64_t offset = 0;  ///< message_receive: where in the buffer the message starts; else 0
  Instant time;              ///< when the engine finished it, to some microseconds
  const EndPoint& sender;    ///< message_receive with status ok; else empty. Copy it to keep it
  /// The transfer machine that the buffer was queued with; null if its handle was destroyed in a callback.
  TransferMachine* machine = nullptr;
  /// A message that is not in the buffer but where its sender has written it (MessageReceive::takes_loans). Read it
  /// there. Move the loan out to keep it, else it is given back after the callback. Null of all others.
  Loan* loan = nullptr;

  /// Bytes that are left for further messages: of a message in a buffer that stays queued. 0 of a final event, and
  /// where it was lent. Fewer than size_min never are.
  std::uint64_t room() const noexcept;
};

using BufferCallback = std::function<void(const BufferEvent&)>;

/// States of a transfer machine. The numbers are Motr's.
enum class MachineState : std::uint8_t {
  undefined = 0,    ///< closed
  initialized = 1,  ///< constructed
  starting = 2,
  started = 3,
  stopping = 4,
  stopped = 5,
  failed = 6,  ///< could not start; may only be closed
};

/// "initialized", "starting", ...
std::string_view to_string(MachineState state) noexcept;

/// Something happened to the transfer machine itself. Valid during the callback.
struct MachineEvent {
  enum class Kind : std::uint8_t {
    error = 0,  ///< `status` no_buffer: messages were dropped, no queued buffer could take them; one event for all
                ///< of some milliseconds; restarted: the host engine has ended (docs/host.md), this machine may only
                ///< be stopped. Where delivery is synchronous it comes with the next call that looks
    state_change = 1,  ///< to next_state: started, stopped, or failed with its cause in `status`
    diagnostic = 2,  ///< `text` alone: with `started`, the settings of the domain that mean nothing, as another domain
                     ///< of this process had started the engine at this address before
    peer_gone = 3,   ///< the engine `peer`, of which this machine has end points, is lost: `status` silent, restarted,
                     ///< refused or unreachable; what was under way with it ends so. It may come back, and is met anew
                     ///< by the next message. Of a peer of this host once for each way that was in use, shared memory
                     ///< and the network. Where delivery is synchronous it comes with the next call that looks
    statistics = 4,  ///< as asked for by TransferMachine::report_statistics(): `text` is a line of key=value
  };
  Kind kind = Kind::state_change;
  TransferMachine& machine;
  Instant time;
  Status status = Status::ok;
  MachineState next_state = MachineState::undefined;  ///< state_change only
  const EndPoint& end_point;                          ///< the machine's own, with `started`; else empty
  std::string_view text;                              ///< failed, error, peer_gone: one line with the remedy
  /// peer_gone: "10.0.0.5@udp:20480", with which the addresses of the peer's end points begin.
  std::string_view peer = {};
};

using MachineCallback = std::function<void(const MachineEvent&)>;

}  // namespace fairlead::net
