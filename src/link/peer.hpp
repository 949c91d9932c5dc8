#pragma once
// The state of the link for one peer. An idle peer has only this struct (at most 2 KiB with its place in the tables).
// Rings, bitmaps and reassembly slots are allocated at the first traffic and freed when the peer falls quiet.
//
//   closed   no session; a submission begins one
//   opening  this side's hello is out; messages wait
//   open     both tokens are known; data flows
//
// In any state a received hello with its cookie makes a candidate. The candidate becomes the session when a segment
// with its token arrives. Only then has the peer proven that it hears this side, so a forged or late hello ends
// nothing.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "link/congestion_window.hpp"
#include "link/half.hpp"
#include "link/link.hpp"
#include "link/message.hpp"
#include "link/pacer.hpp"
#include "link/path_mtu.hpp"
#include "link/reassembly.hpp"
#include "link/receive_window.hpp"
#include "link/reorder_window.hpp"
#include "link/round_trip.hpp"
#include "link/sealed_session.hpp"
#include "link/segment.hpp"
#include "link/segment_parts.hpp"
#include "link/send_window.hpp"
#include "wire/hello.hpp"

namespace fairlead::link {

using TimerHook = boost::intrusive::set_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

/// The acknowledgement that is owed to the peer.
struct AckDebt {
  bool is_owed = false;
  bool is_at_once = false;
  bool has_echo = false;
  bool was_duplicate = false;  // the segment to be echoed was a duplicate
  bool is_after_end = false;   // the last segment was the end of a long message, and no data was sent since
  wire::Ticks echo;
  base::Instant echo_arrived;
  base::Instant due;           // deadline, if owed and not at once
  std::uint32_t segments = 0;  // since the last ACK
  std::uint32_t commands = 0;  // those of them on the command channel
  std::uint64_t bytes = 0;
};

struct Peer {
  enum class State : std::uint8_t { closed, opening, open };
  struct Candidate {
    Half ours;
    wire::Hello theirs;
    wire::Ticks hello_timestamp;
    base::Instant since;
    std::unique_ptr<SealedCandidate> sealed;  // null if the hello was not sealed
  };

  explicit Peer(const base::SocketAddress& its_address, std::uint32_t reassembly_slots)
      : address(its_address), reassembly(reassembly_slots) {}

  // Address, tables and session.
  base::SocketAddress address;
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  State state = State::closed;
  bool is_known_to_engine = false;  // else the peer is forgotten together with its candidate
  bool has_left = false;            // the peer said that its engine ends; its session ends next
  Half ours;
  wire::Hello theirs;
  std::optional<Candidate> candidate;
  wire::Ticks hello_timestamp;  // of the hello that this session answered
  std::uint32_t path_datagram_max = 0;
  std::uint32_t datagram_size = 0;  // for segments cut now,
  std::uint32_t tag_bytes = 0;      // before sealing adds this much
  PathMtu mtu;

  // Opening.
  bool owes_hello = false;
  bool has_shown_cookie = false;  // since the last repeat of the hello
  bool is_greeted = false;        // a hello, proven or not, came from the peer since this side's hello left
  std::uint64_t cookie = 0;       // that the peer gave for this side's hello
  bool owes_hello_ack = false;    // for the candidate if there is one, else for the session
  std::uint32_t hellos = 0;
  base::Instant opening_since, hello_at;
  Introduction introduction;  // by its last hello or hello_ack

  /// What prevented a datagram from reaching the peer.
  struct Hindrance {
    Obstacle what = Obstacle::no_route;
    base::Instant at;
    int send_errno = 0;  // 0: by ICMP
    bool is_certain() const { return send_errno != 0 || what == Obstacle::not_let_out; }
  };
  std::optional<Hindrance> hindrance;  // the last one
  /// Returns whether there was a hindrance since the session made progress, or since it began to open.
  bool is_hindered() const { return hindrance && (state == State::opening || hindrance->at > last_progress); }
  /// An ICMP message may be forged, so it does not hide what this host's kernel said.
  void note(const Hindrance& other) {
    if (other.is_certain() || !is_hindered() || !hindrance->is_certain()) hindrance = other;
  }

  // Sealing: null if the session is not sealed.
  std::unique_ptr<SealedSession> sealed;
  std::unique_ptr<SealedHello> sealed_hello;         // while the session opens, or is doubted
  seal::Refused refused = seal::Refused::none;       // why the peer refused our hello, by its own unproven word
  seal::Refused refused_here = seal::Refused::none;  // why this side cannot greet the peer
  bool is_asked_to_seal = false;                     // the peer demands a sealed hello, by its own unproven word
  bool is_other_key_due = false;                     // the next hello tries another key: the peer has changed its own
  std::uint8_t key_attempt = 0;                      // which of the peer's public keys is tried

  // Waiting to be sent: segments of short messages by channel, long messages, and long messages that are fully cut.
  std::array<SegmentList, kChannels> queued;
  std::array<std::uint32_t, kChannels> queued_messages{}, queued_segments{};
  MessageList messages, messages_cut;
  std::uint32_t commands_in_a_row = 0;  // trains of the command channel without one of bulk
  std::int64_t turn_bytes = 0;          // bytes left of its turn among the ready peers; negative: owed to the others
  std::uint32_t messages_open = 0;      // in messages and messages_cut
  std::uint32_t message_number = 0;
  std::uint32_t ordered = 0, ordered_cut = 0;  // ordered long messages submitted, and those that have left
  std::uint64_t slots_taken = 0;               // bit i: slot i of the peer's reassembly slots
  std::uint32_t slots_granted = 0;

  // Sent. `in_flight` is in the order of transmission.
  SendWindow window;
  SegmentList in_flight;
  std::uint64_t bytes_in_flight = 0;  // as the receiver's kernel charges them
  std::array<std::uint32_t, kChannels> segments_limit{};
  std::array<std::uint64_t, kChannels> bytes_limit{};
  std::uint64_t order = 0;         // number of transmissions so far
  std::uint64_t order_acked = 0;   // the latest transmission known to have arrived
  std::uint64_t order_judged = 0;  // order_acked at the last ACK that covered the whole window
  wire::Sequence ack_reach;        // the last ACK reported on segments before this one

  CongestionWindow congestion;
  bool answers_ends = false;  // this side answered the last long message with one of its own, before more arrived
  Pacer pacer;

  // Bytes of long messages that the peer allows in flight (grants.hpp).
  static constexpr std::uint64_t kNoBound = ~std::uint64_t{0};
  std::uint64_t granted = kNoBound;
  base::Instant asked_at;  // when a turn was last asked for
  bool has_asked = false;

  // What this side grants the peer.
  base::Instant bulk_at, granted_at;
  std::int64_t grant_left = 0;
  enum class Grant : std::uint8_t { none, waiting, given } grant = Grant::none;

  // Repair.
  RoundTrip round_trip;
  wire::Ticks echo_measured;    // the newest echo measured
  base::Instant measured_at{};  // when
  ReorderWindow reordering;
  std::uint32_t backoff = 0;  // timeouts since the last progress
  wire::Ticks fast_resend_at;
  base::Instant last_sent, last_progress, last_heard;
  base::Instant loss_at = base::kNever;

  // Received.
  ReceiveWindow received;
  AckDebt ack;
  Reassembly reassembly;
  std::unique_ptr<SegmentParts> parts;             // segments that arrive in parts
  std::array<wire::Sequence, 2> probes_to_answer;  // sequences of the probes
  std::uint32_t probe_answers_owed = 0;
  std::uint32_t longest_probe = 0;  // bytes of the datagram, since the peer was met

  // Stall detection (expiry.hpp).
  base::Instant stall_look_at = base::kNever;
  wire::Sequence oldest_seen;      // oldest sequence in flight at the last check
  std::uint8_t stalled_looks = 0;  // checks at which it was the same
  bool is_message_stuck = false;   // the peer does not continue one of its messages

  // Hooks of the link's lists; each unlinks itself when the peer is destroyed.
  ListHook ready_hook, ack_hook, control_hook, bulk_hook, grant_hook, place_hook, half_open_hook;
  TimerHook timer_hook;
  base::Instant timer_at = base::kNever;

  bool has_queued() const { return !queued[0].empty() || !queued[1].empty() || !messages.empty(); }
  bool has_bulk_queued() const { return !queued[1].empty() || !messages.empty(); }
  /// True if long messages have waited for kCommandsInARow trains of short ones, and are next.
  static constexpr std::uint32_t kCommandsInARow = 64;
  bool is_bulk_due() const { return commands_in_a_row >= kCommandsInARow && has_bulk_queued(); }
  bool has_storage() const {
    return window.has_ring() || received.has_bitmap() || reassembly.has_slots() || parts ||
           (sealed && sealed->keys.can_drop_previous());
  }
  bool is_quiet() const {
    return window.in_flight() == 0 && !has_queued() && received.ahead() == 0 && reassembly.open_count() == 0;
  }
};

struct EarlierTimer {
  bool operator()(const Peer& a, const Peer& b) const { return a.timer_at < b.timer_at; }
};

template <ListHook Peer::* kHook>
using PeerList = boost::intrusive::list<Peer, boost::intrusive::member_hook<Peer, ListHook, kHook>,
                                        boost::intrusive::constant_time_size<false>>;
using TimerQueue =
    boost::intrusive::multiset<Peer, boost::intrusive::member_hook<Peer, TimerHook, &Peer::timer_hook>,
                               boost::intrusive::compare<EarlierTimer>, boost::intrusive::constant_time_size<false>>;

static_assert(sizeof(Peer) <= 1664, "an idle peer has to stay small");

}  // namespace fairlead::link
