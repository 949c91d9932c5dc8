#pragma once
// The link: exactly-once, unordered delivery of messages of any length between engines, over datagrams that may be
// lost, repeated, reordered or damaged (docs/link.md).
//
// Sans I/O: bytes and the time come in as arguments, segments to send and facts come out by value. No socket, no
// clock, no callback; no allocation per message after set-up (a peer's first traffic may allocate its window).
//
// How the engine drives it, one thread at a time:
//   receive(from, bytes, now)      each datagram; then next_delivery() until empty (before the next receive)
//   next_outcome(), next_notice()  ends of own messages; what became of peers
//   next_train(now, train)         until false: what to send now (resends first, then ready peers in turn, then ACKs)
//   expire(now), next_deadline()   timers
//
// A session is one life of a conversation between two engines. It starts by hello / hello_ack, in which each side
// gives the other a random 64-bit token; every later segment carries the receiver's token, so that a segment of an
// earlier life, of a restarted peer or of a stranger is recognised and counted, never accepted. Hellos carry the
// engine's epoch: a peer that answers with another epoch has restarted, and all that was pending ends `restarted`.

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
#include "link/seal_settings.hpp"
#include "seal/handshake.hpp"
#include "wire/envelope.hpp"

namespace fairlead::link {

/// Names a peer while the link lives; index + generation, so a stale one is recognised.
struct PeerHandle {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  bool operator==(const PeerHandle&) const = default;
};

/// A message to send: the first `size` bytes of `pieces`. They stay the caller's and untouched until its outcome,
/// unless `size` <= LinkOptions::embedded_max: those are copied at submit.
struct Outgoing {
  wire::Envelope envelope;
  std::span<const iovec> pieces;  // at most kPiecesMax; the array itself also stays valid until the outcome
  std::uint64_t size = 0;         // at most what is in pieces; 0 is a message too
  std::uint64_t cookie = 0;       // comes back in the outcome
  bool wants_outcome = true;      // false: fire and forget, only up to embedded_max
  bool is_ordered = false;        // leaves after all others to this peer that are; what is lost on the way comes later
};
/// Where a transport keeps a message that it has taken. It goes with the message; one that has gone names nothing.
using Reference = std::uint64_t;
/// Most pieces of one message.
inline constexpr std::size_t kPiecesMax = 1024;

/// A message (whole) or one chunk of it, accepted exactly once. Placed by the engine before the next call.
struct Delivery {
  PeerHandle peer;
  wire::Envelope envelope;
  std::uint64_t size = 0;    // of the whole message
  std::uint64_t offset = 0;  // of these bytes in it
  std::span<const std::byte> bytes;
  std::uint32_t reassembly = kWhole;  // reassembly slot of a chunked message
  bool is_first = true;               // no chunk of this message was delivered before (any offset)
  bool is_last = true;                // with these bytes the message is complete
  std::uint64_t target = 0;           // what set_target() gave for this slot; 0 at first
  // The sender may take back what lies in its memory (shm/tickets.hpp): the word by which it does.
  const std::atomic<std::uint32_t>* permission = nullptr;
  std::uint32_t ticket = 0;
  /// What was read of `bytes` up to now is what the sender meant.
  bool is_good() const {
    if (permission == nullptr) [[likely]]
      return true;
    std::atomic_thread_fence(std::memory_order_acquire);
    return permission->load(std::memory_order_relaxed) == ticket;
  }
  static constexpr std::uint32_t kWhole = ~0U;
};

/// The end of an own message: acknowledged in full (ok), cancelled, or failed with its cause. Exactly one per submit
/// with wants_outcome.
struct Outcome {
  std::uint64_t cookie = 0;
  Status status = Status::ok;
};

/// Which of the ways in which a path fails a peer's silence looks like.
enum class Diagnosis : std::uint8_t {
  none,              // it spoke, or it is no failure of the path
  left,              // it said that its engine ends
  no_route,          // our kernel has no way to it
  not_let_out,       // a firewall of our host drops what goes there
  nothing_heard,     // neither short nor long ones: not running, wrong address, no route
  one_direction,     // it is heard, but does not hear us
  stuck,             // it is heard, but does not go on with a message that it has begun
  too_long,          // short ones arrive, those of the least length that a path must carry do not: the MTU
  refused_there,     // the peer refuses our greeting, or so it says (Notice::refused)
  refused_here,      // we cannot greet it (Notice::refused)
  keys_not_changed,  // its sealed session has to have new keys, and the peer made none with us
};

/// Why the kernel does not reach a peer.
enum class Obstacle : std::uint8_t {
  nobody_listens,
  no_route,     // no host there, no network, an address of the other family
  not_let_out,  // a firewall of our host
};

/// The last hello that was refused, for people.
struct TurnedAway {
  base::SocketAddress from;
  seal::Refused why = seal::Refused::none;
  std::uint64_t number = 0;  // of those refused so far
};

/// What happened to a peer. After `lost` every pending message has had its outcome, and half-received ones are
/// reported by `reassembly_lost` (their memory is the engine's again).
struct Notice {
  enum class Kind : std::uint8_t {
    connected,
    lost,
    reassembly_lost,  // with the peer, or because it has taken that message back: `refused`
    forgotten,  // nothing was pending, and its place was wanted or the peer's was; the handle is stale from now on
  } kind = Kind::connected;
  PeerHandle peer;
  Status status = Status::ok;             // lost: unreachable, silent, restarted, refused
  std::uint64_t target = 0;               // reassembly_lost: what set_target() gave
  base::Duration silent_for{};            // lost: since last heard (or since the first attempt)
  base::Duration resend_after{};          // lost: the timeout in force
  std::uint32_t resends = 0;              // lost: of the oldest segment
  Diagnosis diagnosis = Diagnosis::none;  // lost: unreachable, silent, refused
  seal::Refused refused = seal::Refused::none;
};

/// Scatter list of one train, filled by next_train(); points into the link and into senders' buffers, valid until the
/// next call into the link.
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

/// What the link says of one peer, for statistics and error texts.
struct PeerFacts {
  base::SocketAddress address;
  std::uint64_t epoch = 0;  // of the peer's engine; 0 before it answered
  bool is_connected = false;
  bool is_sealed = false;
  std::uint64_t key_epoch = 0;  // how often its keys were changed
  base::Duration round_trip{};  // smoothed
  base::Duration round_trip_min{};
  base::Duration resend_after{};
  base::Instant last_heard{};     // epoch of the clock if never
  base::Instant opening_since{};  // when a session was last asked for; epoch of the clock if never
  std::uint32_t segments_in_flight = 0;
  std::uint64_t bytes_in_flight = 0;
  std::uint64_t bytes_in_flight_max = 0;  // by both sides' windows and the congestion window
  std::uint64_t messages_queued = 0;
  std::uint32_t messages_arriving = 0;  // received in part
  std::uint32_t datagram_size = 0;      // that is sent to it
};

struct LinkState;

class Link {
 public:
  /// `epoch` names this engine's life; `seed` feeds tokens and initial sequences (random in production, fixed in
  /// simulation). `train_bytes_max`, `train_datagrams_max`: limits of the path.
  /// `sealing`: what sessions are sealed with, if they are.
  Link(const LinkOptions& options, std::uint64_t epoch, std::uint64_t seed,
       std::optional<SealSettings> sealing = std::nullopt);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// The peer at an address, made if it is new: O(1). `datagram_size_max`: what the path can carry to it (used on
  /// creation, see set_datagram_size_max). Its handle is good until next_notice() says that it is forgotten: one that
  /// nobody uses gives way to others.
  Result<PeerHandle> peer(const base::SocketAddress& address, std::uint32_t datagram_size_max, base::Instant now);
  std::optional<PeerHandle> find(const base::SocketAddress& address) const;
  /// What the path can carry to it now: also what was sent before follows.
  void set_datagram_size_max(PeerHandle peer, std::uint32_t bytes, base::Instant now);
  /// Somebody, who may lie, says that the path to it carries no more than this. It is found out by probes.
  void hint_datagram_size(PeerHandle peer, std::uint32_t bytes, base::Instant now);
  PeerFacts facts(PeerHandle peer) const;
  /// A key of the session that is open now: the same at both ends, and known to nobody else. None if there is none.
  std::optional<base::SipKey> pair_key(PeerHandle peer) const;
  /// After a submission: whether to call next_train() at once, because little is in flight to this peer or because what
  /// waits has just filled a segment and is worth a call of its own. Else it travels with what comes in the meantime.
  bool is_eager(PeerHandle peer) const;
  /// Valid until the peer is forgotten; no address if the handle is stale.
  const base::SocketAddress& address(PeerHandle peer) const;
  /// Shows at most so many peers, in no order; `visit` must not call the link.
  void for_each_peer(std::size_t most, const std::function<void(const PeerFacts&)>& visit) const;

  /// Takes a message: ok, again (a bound is reached, nothing taken), too_big, stale (handle), invalid (too many pieces,
  /// or fewer than `size` bytes in them, or a long one that wants no outcome). An outcome follows ok. `reference`: for
  /// cancel().
  Status submit(PeerHandle peer, const Outgoing& message, base::Instant now, Reference* reference = nullptr);
  /// Nothing refers to the caller's memory any more when this returns. True if the message ends by it, with outcome
  /// `canceled`: none of it had been sent, or it is a long one that is not acknowledged in full. What is to be sent
  /// again of that is void, and what the peer has of it is thrown away, unless the peer has all. False: it is a copy
  /// that is out, or has ended; the outcome comes as usual. O(1).
  bool cancel(PeerHandle peer, Reference reference, std::uint64_t cookie);

  /// A datagram came. Anything that is not a valid segment for us is counted by reason and ignored.
  /// `datagram_size_max` as in peer(), used when the sender is new.
  void receive(const base::SocketAddress& from, std::span<const std::byte> bytes, base::Instant now,
               std::uint32_t datagram_size_max);
  /// Next message or chunk of the datagram just received.
  std::optional<Delivery> next_delivery();
  /// Remembers the engine's word for a chunked message; comes back in its later deliveries.
  void set_target(PeerHandle peer, std::uint32_t reassembly, std::uint64_t target);

  /// Whether next_outcome() or next_notice() has one.
  bool has_news() const;
  /// A `lost` is among the notices.
  bool has_loss() const;
  std::optional<Outcome> next_outcome();
  std::optional<Notice> next_notice();

  /// Fills one train; false if there is nothing to send now.
  bool next_train(base::Instant now, std::uint32_t train_bytes_max, std::uint32_t train_datagrams_max, Train& train);

  /// The path did not take the train that next_train() has just filled, and nothing was called in between: its segments
  /// (a greeting or an ACK too) are what the next trains begin with, neither lost nor resent.
  void take_back(const Train& train, base::Instant now);

  /// Runs timers that are due: timeouts, tail probes, delayed ACKs, give-up.
  void expire(base::Instant now);
  /// When expire() has to be called again at the latest; kNever if nothing is pending.
  base::Instant next_deadline() const;

  /// Other keys for handshakes from now on; sessions go on, and take them at their next change of keys. Only if there
  /// was a keyring from the beginning.
  void set_keyring(std::shared_ptr<const seal::Keyring> ring);
  const TurnedAway& turned_away() const;

  /// A hint from the path that the kernel does not reach this address, and why. It ends a session only while that is
  /// being opened, because nobody vouches for ICMP. That our own host lets nothing out ends none: the rule may go away
  /// in time; else it is the diagnosis.
  void unreachable(const base::SocketAddress& address, Obstacle obstacle, base::Instant now);

  /// Ends the conversation with a peer in any state: pending messages end `canceled`, the peer is told (once, its copy
  /// may get lost: it then learns at its next segment), and told what of its messages has arrived. The peer is
  /// forgotten, its handle is stale from now on.
  void disconnect(PeerHandle peer, base::Instant now);
  /// Ends the session with a peer that does what none should. It is told, what is pending to it ends `refused`, and a
  /// `lost` notice follows; what else came in its last datagram is not delivered. It may greet again.
  void expel(PeerHandle peer, base::Instant now);
  /// This engine ends: no session is opened any more, and all peers are told, again by each call, for it may get lost.
  /// Whoever has heard it says so, and is lost. How many have not.
  std::size_t take_leave(base::Instant now);
  /// Disconnects all of them, before the link itself ends.
  void disconnect_all(base::Instant now);

  /// For the next program in this process, which goes on where this one has stopped. again: something of ours is on its
  /// way; not_supported: a session that cannot be kept. The message names the peer.
  Result<LinkState> save() const;
  /// Into a link of the same options, epoch and seed, that knows nobody yet. Each session tells that it is connected.
  Result<> restore(const LinkState& state, base::Instant now);

  const LinkCounters& counters() const;
  std::size_t peer_count() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fairlead::link
