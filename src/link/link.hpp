#pragma once
// The link: exactly-once, unordered delivery of messages of any length between engines, over datagrams that may be
// lost, repeated, reordered or damaged (docs/link.md).
//
// Sans I/O: datagrams and the time are arguments; segments to send and events are return values. No socket, no clock,
// no callback. No allocation per message after set-up (a peer's first traffic may allocate its window).
//
// How the engine drives it, one thread at a time:
//   receive(from, bytes, now)      each datagram; then next_delivery() until empty (before the next receive)
//   next_outcome(), next_notice()  outcomes of own messages; notices about peers
//   next_train(now, train)         until false: what to send now (resends first, then ready peers in turn, then ACKs)
//   expire(now), next_deadline()   timers
//
// A session begins with hello and hello_ack, in which each side gives the other a random 64-bit token. Every later
// segment carries the receiver's token. So a segment of an earlier session, of a restarted peer or of a stranger is
// recognised and counted, never accepted. Hellos carry the engine's epoch: a peer that answers with another epoch has
// restarted, and all that was pending ends `restarted`.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <sys/uio.h>

#include <fairlead/error.hpp>

#include "base/sip_hash.hpp"
#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "link/link_counters.hpp"
#include "link/link_options.hpp"
#include "link/operation_handle.hpp"
#include "link/seal_settings.hpp"
#include "link/send_part.hpp"
#include "seal/handshake.hpp"
#include "wire/envelope.hpp"

namespace fairlead::link {

/// Names a peer while the link lives: index and generation, so that a stale handle is recognised.
struct PeerHandle {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  bool operator==(const PeerHandle&) const = default;
};

/// A message to send: the first `size` bytes of `pieces`. The caller must not change them until the outcome, unless
/// `size` <= LinkOptions::embedded_max: such messages are copied at submission.
struct Outgoing {
  wire::Envelope envelope;
  std::span<const iovec> pieces;  // at most kPiecesMax; the array has to stay valid until the outcome, too
  std::uint64_t size = 0;         // at most the sum of the pieces; 0 is allowed
  std::uint64_t cookie = 0;       // returned in the outcome
  bool wants_outcome = true;      // false: no outcome; only for messages up to embedded_max
  bool is_ordered = false;        // leaves after all earlier ordered messages to this peer; a lost one arrives later
  std::uint32_t owner = ~0U;      // set by send_short(); Outcome::kNobody otherwise
};
/// Short messages to one port, copied at submission. Of each message the transport keeps only the cookie, the owner and
/// the length, and returns them in its outcome.
struct ShortSend {
  std::uint32_t source_port = 0, target_port = 0;
  std::uint32_t owner = 0;
  std::span<const SendPart> parts;  // one message each
};
/// Names the object in which a transport keeps a message. It is valid until the message ends; then it names nothing.
using Reference = std::uint64_t;
/// Most pieces of one message.
inline constexpr std::size_t kPiecesMax = 1024;

/// A message (whole) or one chunk of it, accepted exactly once. The engine has to copy it before the next call.
struct Delivery {
  PeerHandle peer;
  wire::Envelope envelope;
  std::uint64_t size = 0;    // of the whole message
  std::uint64_t offset = 0;  // of these bytes in the message
  std::span<const std::byte> bytes;
  std::uint32_t reassembly = kWhole;  // reassembly slot of a chunked message
  bool is_first = true;               // no chunk of this message was delivered before, at whatever offset
  bool is_last = true;                // these bytes complete the message
  std::uint64_t target = 0;           // the value of set_target() for this slot; 0 at first
  // If the bytes lie in the sender's memory, the sender may take them back by changing this word (shm/tickets.hpp).
  const std::atomic<std::uint32_t>* permission = nullptr;
  std::uint32_t ticket = 0;
  /// Returns whether everything read from `bytes` so far was still valid.
  bool is_good() const {
    if (permission == nullptr) [[likely]]
      return true;
    std::atomic_thread_fence(std::memory_order_acquire);
    return permission->load(std::memory_order_relaxed) == ticket;
  }
  /// Returns whether the message is complete, and its bytes are not in memory that the sender may take back.
  bool is_short() const { return reassembly == kWhole && permission == nullptr; }
  static constexpr std::uint32_t kWhole = ~0U;
};

/// The end of an own message: acknowledged in full (ok), cancelled, or failed with its cause. Exactly one per
/// submission with wants_outcome.
struct Outcome {
  static constexpr std::uint32_t kNobody = ~0U;
  std::uint64_t cookie = 0;
  Status status = Status::ok;
  std::uint32_t owner = kNobody;  // set for messages of send_short()
  std::uint32_t length = 0;       // bytes of such a message
};

/// The cause that a peer's silence suggests.
enum class Diagnosis : std::uint8_t {
  none,              // the peer was heard, or the path is not the cause
  left,              // the peer said that its engine ends
  no_route,          // this host's kernel has no route to it
  not_let_out,       // a firewall of this host drops datagrams to it
  not_sent,          // this host's kernel refuses to send to it (Notice::send_errno)
  prohibited,        // a firewall on the way, or the peer's, rejects datagrams to it, by an ICMP message
  told_by_icmp,      // nothing is heard, and an ICMP message names an obstacle (Notice::obstacle)
  no_host,           // nothing is heard, and no host answers at its address (ARP, neighbour discovery)
  nothing_heard,     // neither short nor long datagrams: not running, wrong address, no route
  one_direction,     // the peer is heard, but does not hear this side
  stuck,             // the peer is heard, but does not continue a message that it has begun
  too_long,          // short datagrams arrive, those of the minimum MTU of a path do not
  refused_there,     // the peer, or a process that claims to be it, refuses our hello (Notice::refused)
  refused_here,      // this side cannot send the peer a hello (Notice::refused)
  keys_not_changed,  // its sealed session needs new keys, and the peer did not take part
  process_ended,     // shared memory: the kernel closed its socket, and it had not announced its end
  cut_there,         // shared memory: the peer ended the connection, and lives on
  cut_here,          // shared memory: this side ended the connection
  not_shared,        // shared memory: the peer was not found there, and no other path is permitted
};

/// Why the kernel cannot reach a peer.
enum class Obstacle : std::uint8_t {
  nobody_listens,
  no_route,     // no such host, no such network, an address of the other family
  not_let_out,  // a firewall of this host
  prohibited,   // another firewall, by an ICMP message
};

/// The hello that was refused last, for the log.
struct TurnedAway {
  base::SocketAddress from;
  seal::Refused why = seal::Refused::none;
  std::uint64_t number = 0;  // hellos refused so far
};

/// An event of a peer. When `lost` is reported every pending message has had its outcome, and half-received ones were
/// reported by `reassembly_lost` (the engine may reuse their memory).
struct Notice {
  enum class Kind : std::uint8_t {
    connected,
    lost,
    reassembly_lost,  // the peer was lost, or it took that message back (`refused`)
    parting,          // shared memory: nothing new begins with this handle
    parted,           // shared memory: the handle is stale from now on, and nothing was pending
    forgotten,  // nothing was pending, and the place was needed or the peer forgot us; the handle is stale from now on
  } kind = Kind::connected;
  PeerHandle peer;
  Status status = Status::ok;              // lost: unreachable, silent, restarted, refused
  std::uint64_t target = 0;                // reassembly_lost: the value of set_target()
  base::Duration silent_for{};             // lost: since the peer was heard last (or since the first attempt)
  base::Duration resend_after{};           // lost: the timeout in force
  std::uint32_t resends = 0;               // lost: of the oldest segment
  Diagnosis diagnosis = Diagnosis::none;   // lost
  Obstacle obstacle = Obstacle::no_route;  // lost: of told_by_icmp
  int send_errno = 0;                      // lost: of not_sent
  seal::Refused refused = seal::Refused::none;
};

/// Scatter list of one train, filled by next_train(). It points into the link and into senders' buffers; valid until
/// the next call into the link.
struct Train {
  static constexpr std::size_t kPiecesInTrain = 512;
  base::SocketAddress to;
  std::uint32_t datagram_size = 0;  // all datagrams but the last have this size
  std::uint32_t datagrams = 0;
  std::uint32_t bytes = 0;
  std::size_t piece_count = 0;
  iovec pieces[kPiecesInTrain];

  void add(void* base, std::size_t length) { pieces[piece_count++] = {base, length}; }
};

/// State of one peer, for statistics and error texts.
struct PeerFacts {
  base::SocketAddress address;
  std::uint64_t epoch = 0;  // of the peer's engine; 0 before it answered
  bool is_connected = false;
  bool is_sealed = false;
  std::uint64_t key_epoch = 0;  // how often its keys were changed
  base::Duration round_trip{};  // smoothed
  base::Duration round_trip_min{};
  base::Duration resend_after{};
  base::Instant last_heard{};     // zero if never
  base::Instant opening_since{};  // when a session was last asked for; zero if never
  std::uint32_t segments_in_flight = 0;
  std::uint64_t bytes_in_flight = 0;
  std::uint64_t bytes_in_flight_max = 0;  // limit by both sides' windows and the congestion window
  std::uint64_t messages_queued = 0;
  std::uint32_t messages_arriving = 0;  // received in part
  std::uint32_t datagram_size = 0;      // of datagrams to this peer
  std::uint32_t longest_probe = 0;      // of the path MTU by the peer that has arrived; 0: none
  bool is_translated = false;           // its address or ours is translated on the way (NAT)
  std::uint32_t release = 0;            // of its library: major << 16 | minor << 8 | patch; 0: unknown
};

struct LinkState;
struct PeerState;

class Link {
 public:
  /// `epoch` names this run of the engine. `seed` feeds tokens and initial sequences (random in production, fixed in
  /// simulation). `sealing`: keys with which sessions are sealed, if they are.
  Link(const LinkOptions& options, std::uint64_t epoch, std::uint64_t seed,
       std::optional<SealSettings> sealing = std::nullopt);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Returns the peer at an address, and makes it if it is new; O(1). `datagram_size_max`: what the path carries (used
  /// on creation, see set_datagram_size_max). The handle is valid until next_notice() reports the peer as forgotten: an
  /// unused peer may give way to others.
  Result<PeerHandle> peer(const base::SocketAddress& address, std::uint32_t datagram_size_max, base::Instant now);
  std::optional<PeerHandle> find(const base::SocketAddress& address) const;
  /// Sets what the path carries now. Segments that were sent already are resent in parts if necessary.
  void set_datagram_size_max(PeerHandle peer, std::uint32_t bytes, base::Instant now);
  /// Passes on an unproven hint (ICMP) that the path carries no more than this. The link tests it with probes.
  void hint_datagram_size(PeerHandle peer, std::uint32_t bytes, base::Instant now);
  PeerFacts facts(PeerHandle peer) const;
  /// Returns a key of the open session, which only its two ends know. None if no session is open.
  std::optional<base::SipKey> pair_key(PeerHandle peer) const;
  /// Returns whether to call next_train() at once after a submission: little is in flight to this peer, or the waiting
  /// messages have just filled segments worth a call. Otherwise they leave with those of the next pass.
  bool is_eager(PeerHandle peer) const;
  /// Returns whether a message of any length would begin to leave within a burst of the pacer: the session is open,
  /// nothing waits, and the peer grants any number of bytes.
  bool is_idle(PeerHandle peer) const;
  /// Valid until the peer is forgotten; an empty address if the handle is stale.
  const base::SocketAddress& address(PeerHandle peer) const;
  /// Visits at most `most` peers, in no order. `visit` must not call the link.
  void for_each_peer(std::size_t most, const std::function<void(const PeerFacts&)>& visit) const;

  /// Queues a message. Returns ok, again (a limit is reached, nothing was taken), too_big, stale (handle), or invalid.
  /// Invalid are too many pieces, fewer than `size` bytes in them, and a long message without an outcome. An outcome
  /// follows ok. `reference`: for cancel().
  Status submit(PeerHandle peer, const Outgoing& message, base::Instant now, Reference* reference = nullptr);
  /// Submits the parts in order, each of at most `embedded_max` bytes, up to the first that is not accepted. Returns
  /// how many were accepted, and names each in `names`.
  std::size_t send_short(PeerHandle peer, const ShortSend& send, base::Instant now, std::span<OperationHandle> names);
  /// Ends such a message early. Returns its outcome, after which none follows: `canceled` (it may still arrive if it
  /// was sent), or the outcome that was not fetched yet. Returns nullopt if it has ended.
  std::optional<Outcome> end_early(std::uint32_t owner, OperationHandle name);
  /// Does the same for any message of the owner, starting at room `first`; sets `first` to where to continue.
  std::optional<Outcome> end_any_early(std::uint32_t owner, std::uint32_t& first);
  /// The peer reports that no buffer or port accepted the message: sets the status of its outcome. Returns false if
  /// there is no such message to that peer.
  bool mark_refused(PeerHandle peer, OperationHandle name, Status status);
  /// Returns whether a message is pending that was not cancelled. Slow: for the end of the engine.
  bool is_owing() const;
  /// Returns how many messages of send_short() have an outcome that was not fetched. Slow: for the simulator.
  std::uint64_t count_pending(std::uint32_t owner);
  /// Takes a message back; O(1). When it returns, nothing refers to the caller's memory any more. True: the message
  /// ends with outcome `canceled`. Either nothing of it was sent, or it is a long message that is not acknowledged in
  /// full. Void segments replace its resends, and the peer drops its part, unless it has all. False: the message is a
  /// copy that was sent, or it has ended; its outcome comes as usual.
  bool cancel(PeerHandle peer, Reference reference, std::uint64_t cookie);
  /// As cancel(), but only a long message of which something was not sent yet. False: it will end as usual.
  bool recall(PeerHandle peer, Reference reference, std::uint64_t cookie);

  /// Processes a received datagram. One that is not a valid segment for this link is counted by reason and dropped.
  /// `datagram_size_max` as in peer(), used if the sender is new.
  void receive(const base::SocketAddress& from, std::span<const std::byte> bytes, base::Instant now,
               std::uint32_t datagram_size_max);
  /// Returns the next message or chunk of the datagram just received.
  std::optional<Delivery> next_delivery();
  /// Stores a value of the engine for a chunked message; later deliveries of the message return it.
  void set_target(PeerHandle peer, std::uint32_t reassembly, std::uint64_t target);

  /// Returns whether next_outcome() or next_notice() has an entry.
  bool has_news() const;
  /// Returns whether a `lost` is among the notices.
  bool has_loss() const;
  std::optional<Outcome> next_outcome();
  std::optional<Notice> next_notice();

  /// Fills one train; returns false if there is nothing to send now.
  bool next_train(base::Instant now, std::uint32_t train_bytes_max, std::uint32_t train_datagrams_max, Train& train);

  /// Takes back the train that next_train() has just filled, because the path did not accept it. No other call may come
  /// in between. The next trains begin with its segments (also a greeting or an ACK). They count neither as lost nor as
  /// resent.
  void take_back(const Train& train, base::Instant now);

  /// Runs the timers that are due: timeouts, tail probes, delayed ACKs, giving up.
  void expire(base::Instant now);
  /// The latest time of the next call of expire(); kNever if nothing is pending.
  base::Instant next_deadline() const;

  /// Sets new keys for later handshakes. Sessions continue, and use them at their next change of keys. Only allowed if
  /// there was a keyring from the beginning.
  void set_keyring(std::shared_ptr<const seal::Keyring> ring);
  /// The hello that this link refused last, and the number of refused ones.
  const TurnedAway& turned_away() const;

  /// Reports that the kernel cannot reach this address, and why. `send_errno`: with which this host's kernel refused to
  /// send; 0: an ICMP message says so. It ends a session only while the session opens, since ICMP is not authenticated,
  /// and an interface may come back. Otherwise it is the diagnosis when the link gives up. A firewall of this host ends
  /// none: its rule may go away in time.
  void unreachable(const base::SocketAddress& address, Obstacle obstacle, base::Instant now, int send_errno = 0);

  /// Ends the conversation with a peer in any state. Pending messages end `canceled`. The peer is told once, together
  /// with the last ACK; if that is lost, it learns at its next segment. The peer is forgotten, and its handle becomes
  /// stale.
  void disconnect(PeerHandle peer, base::Instant now);
  /// Ends the session with a peer that breaks the protocol. The peer is told, its pending messages end `refused`, and a
  /// `lost` notice follows. The rest of its last datagram is not delivered. It may greet again.
  void expel(PeerHandle peer, base::Instant now);
  /// Begins to end this engine: no session is opened any more. Each call tells all peers again, since a close may get
  /// lost. A peer that answers is lost. Returns how many have not answered yet.
  std::size_t take_leave(base::Instant now);
  /// Disconnects all peers, before the link itself ends.
  void disconnect_all(base::Instant now);

  /// Returns whether save() finds nothing in flight that it cannot keep.
  bool is_still() const;
  /// Saves the state for the next program in this process, which continues where this one has stopped. Errors: again
  /// (something is in flight), not_supported (a session cannot be kept). The message names the peer.
  Result<LinkState> save() const;
  /// Restores the state into a link with the same options, epoch and seed and without peers. Each session reports
  /// `connected`.
  Result<> restore(const LinkState& state, base::Instant now);

  const LinkCounters& counters() const;
  std::size_t peer_count() const;

 private:
  bool restore_segments(const PeerState& saved, PeerHandle handle);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fairlead::link
