#pragma once
// Everything the link keeps of one peer. Idle it is this struct alone (at most 2 KiB with its place in the tables):
// rings, bitmaps and reassembly slots are made at the first traffic and given back when it falls quiet.
//
//   closed   no session; a submit begins one
//   opening  our hello is out; messages wait
//   open     both tokens are known; data flows
//
// A hello that comes makes a candidate, whatever the state. It becomes the session when a segment with the candidate's
// token arrives: only then is it proven that the peer hears us and means it, so a forged or late hello ends nothing.

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

/// What we owe the peer for its data.
struct AckDebt {
  bool is_owed = false;
  bool is_at_once = false;
  bool has_echo = false;
  bool was_duplicate = false;  // the segment echoed
  wire::Ticks echo;
  base::Instant echo_arrived;
  base::Instant due;           // if owed and not at once
  std::uint32_t segments = 0;  // since the last ACK
  std::uint32_t commands = 0;  // of these on the command channel
  std::uint64_t bytes = 0;
};

struct Peer {
  enum class State : std::uint8_t { closed, opening, open };
  struct Candidate {
    Half ours;
    wire::Hello theirs;
    wire::Ticks hello_timestamp;
    base::Instant since;
    std::unique_ptr<SealedCandidate> sealed;  // null: it is not
  };

  explicit Peer(const base::SocketAddress& its_address, std::uint32_t reassembly_slots)
      : address(its_address), reassembly(reassembly_slots) {}

  // Who, and which session.
  base::SocketAddress address;
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  State state = State::closed;
  bool is_known_to_engine = false;  // else it goes when its candidate does
  bool has_left = false;            // it says that its engine ends; the session is about to
  Half ours;
  wire::Hello theirs;
  std::optional<Candidate> candidate;
  wire::Ticks hello_timestamp;  // of the hello that the session answered
  std::uint32_t path_datagram_max = 0;
  std::uint32_t datagram_size = 0;  // of what is cut now,
  std::uint32_t tag_bytes = 0;      // before sealing adds this
  PathMtu mtu;

  // Opening.
  bool owes_hello = false;
  bool has_shown_cookie = false;  // since the last repeat
  bool is_greeted = false;        // a hello came from there, proven or not, since ours went
  std::uint64_t cookie = 0;       // that the peer gave for our hello
  bool owes_hello_ack = false;    // for the candidate if there is one, else for the session
  std::uint32_t hellos = 0;
  base::Instant opening_since, hello_at;
  bool has_no_route = false;

  base::Instant not_let_out_at;  // last: our own host dropped what was to go there

  // Sealing: null where nothing is sealed.
  std::unique_ptr<SealedSession> sealed;
  std::unique_ptr<SealedHello> sealed_hello;         // while it opens, or is doubted
  seal::Refused refused = seal::Refused::none;       // why our hello was, says the peer, without proof
  seal::Refused refused_here = seal::Refused::none;  // why we cannot greet it
  bool is_asked_to_seal = false;                     // says the peer, without proof
  bool is_other_key_due = false;                     // with the next repeat of our hello: the peer has changed its own
  std::uint8_t key_attempt = 0;                      // of its public keys

  // Waiting to be sent: short messages in segments by channel, long ones, and long ones cut to their end.
  std::array<SegmentList, kChannels> queued;
  std::array<std::uint32_t, kChannels> queued_messages{}, queued_segments{};
  MessageList messages, messages_cut;
  std::uint32_t commands_in_a_row = 0;  // trains of the command channel
  std::int64_t turn_bytes = 0;          // left of its turn among the ready peers; below zero: owed to the others
  std::uint32_t messages_open = 0;      // in these two lists
  std::uint32_t message_number = 0;
  std::uint32_t ordered = 0, ordered_cut = 0;  // long messages that keep their order, and those of them that have left
  std::uint64_t slots_taken = 0;               // bit i: of the peer's reassembly slots
  std::uint32_t slots_granted = 0;

  // Sent. `in_flight` is in the order of transmission.
  SendWindow window;
  SegmentList in_flight;
  std::uint64_t bytes_in_flight = 0;  // as the receiver's kernel charges them
  std::array<std::uint32_t, kChannels> segments_limit{};
  std::array<std::uint64_t, kChannels> bytes_limit{};
  std::uint64_t order = 0;         // transmissions so far
  std::uint64_t order_acked = 0;   // the latest transmission known to have arrived
  std::uint64_t order_judged = 0;  // the same when an ACK last told of the whole window
  wire::Sequence ack_reach;        // the last ACK told of the segments before this one

  CongestionWindow congestion;
  Pacer pacer;

  // What the peer grants us of long messages, in bytes in flight.
  static constexpr std::uint64_t kNoBound = ~std::uint64_t{0};
  std::uint64_t granted = kNoBound;
  base::Instant asked_at;  // for more
  bool has_asked = false;

  // What we grant the peer.
  base::Instant bulk_at, granted_at;
  std::int64_t grant_left = 0;
  enum class Grant : std::uint8_t { none, waiting, given } grant = Grant::none;

  // Repair.
  RoundTrip round_trip;
  wire::Ticks echo_measured;  // an echo counts once
  ReorderWindow reordering;
  std::uint32_t backoff = 0;  // timeouts since the last progress
  wire::Ticks fast_resend_at;
  base::Instant last_sent, last_progress, last_heard;
  base::Instant loss_at = base::kNever;

  // Received.
  ReceiveWindow received;
  AckDebt ack;
  Reassembly reassembly;
  std::unique_ptr<SegmentParts> parts;             // of segments too long for the path
  std::array<wire::Sequence, 2> probes_to_answer;  // their numbers
  std::uint32_t probe_answers_owed = 0;

  // Whether anything moves (expiry.hpp).
  base::Instant stall_look_at = base::kNever;
  wire::Sequence oldest_seen;      // of ours in flight, at the last look
  std::uint8_t stalled_looks = 0;  // at which it was the same
  bool is_message_stuck = false;   // of its messages

  // Links into the lists of the link; each unlinks itself when the peer goes.
  ListHook ready_hook, ack_hook, control_hook, bulk_hook, grant_hook, place_hook, half_open_hook;
  TimerHook timer_hook;
  base::Instant timer_at = base::kNever;

  bool has_queued() const { return !queued[0].empty() || !queued[1].empty() || !messages.empty(); }
  bool has_bulk_queued() const { return !queued[1].empty() || !messages.empty(); }
  /// Long messages have waited for so many trains of short ones that it is their turn.
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
