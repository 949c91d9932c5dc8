#pragma once
// What the link counted since it was made. Each datagram that came is in exactly one of: a kind accepted, `malformed`
// by reason, or `refused` by reason; each message submitted ends in exactly one outcome. is_consistent() checks both.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wire/drop_reason.hpp"

namespace fairlead::link {

/// Why a well-formed segment was not accepted.
enum class Refusal : std::uint8_t {
  unknown_token,    // of an earlier session, of a restarted peer, or a guess
  wrong_address,    // a right token from a wrong address
  duplicate,        // received before
  too_old,          // before the window: received before, its ACK was lost
  too_new,          // beyond the window: the peer does not keep to it
  ack_beyond_sent,  // acknowledges what was never sent
  bad_chunk,        // does not agree with the other chunks of its message, or with its bounds
  no_slot,          // opens a chunked message in a slot that is taken or beyond those granted
  late_hello_ack,   // answers a hello that is not open any more
  unproven_reset,   // a reset or close that does not know our session
  table_full,       // no room for another peer or half-open session
  notices_full,     // the engine has not fetched its notices

  // Of sealing (docs/seal.md).
  not_sealed,           // in the clear, where only what is sealed is taken
  unknown_epoch,        // sealed with keys that we do not have, or not any more
  replayed,             // came before, or is too old to tell
  bad_tag,              // not made by the peer, or changed on the way
  bad_handshake,        // a message of a handshake that does not fit the ones before
  other_kind,           // hellos: the peer seals with psk, we with x25519, or the other way round
  wrong_secret,         // made with another pre-shared key
  wrong_key,            // made for another public key than ours
  unknown_key,          // by a public key that is not known for its address
  cannot_seal,          // sealed, and there is no key here
  too_many_handshakes,  // more than may be computed
};
inline constexpr std::size_t kRefusals = static_cast<std::size_t>(Refusal::too_many_handshakes) + 1;

/// "unknown token", "duplicate", ... in lower case.
std::string_view to_string(Refusal refusal) noexcept;

struct LinkCounters {
  // Datagrams received = the accepted kinds + malformed + refused.
  std::uint64_t datagrams_received = 0, bytes_received = 0;
  std::uint64_t data_received = 0;  // data segments accepted
  std::uint64_t acks_received = 0;  // segments that are only an ACK
  std::uint64_t hellos_received = 0, hello_acks_received = 0, hello_retries_received = 0;
  std::uint64_t resets_received = 0, closes_received = 0;
  std::uint64_t probes_received = 0, probe_answers_received = 0;  // of the path's MTU
  std::uint64_t hello_refusals_received = 0;
  std::uint64_t rekeys_received = 0, rekey_answers_received = 0;
  std::uint64_t parts_received = 0;  // of segments too long for the path; the last one of each counts as its segment
  std::uint64_t parts_dropped = 0;   // segments that came in part, and made room for later ones
  std::array<std::uint64_t, wire::kDropReasons> malformed{};
  std::array<std::uint64_t, kRefusals> refused{};

  // Of what was accepted.
  std::uint64_t messages_delivered = 0;  // whole, or with their last chunk
  std::uint64_t chunks_delivered = 0;
  std::uint64_t message_bytes_delivered = 0;
  std::uint64_t acks_old = 0;             // acknowledged less than an earlier one: overtaken on the way
  std::uint64_t acks_repeated = 0;        // acknowledged nothing new
  std::uint64_t duplicates_reported = 0;  // the peer says that what we resent was there already

  // Datagrams sent.
  std::uint64_t datagrams_sent = 0, bytes_sent = 0, trains_sent = 0;
  std::uint64_t trains_returned = 0;  // the path did not take them; not in the three before
  std::uint64_t segments_sent = 0;    // data segments, each counted once
  std::uint64_t segments_acked = 0;
  std::uint64_t segments_abandoned = 0;           // in flight when their session ended
  std::uint64_t segments_in_flight = 0;           // now
  std::uint64_t whole_sent = 0, chunks_sent = 0;  // messages in one segment; chunks
  std::uint64_t acks_sent = 0;                    // segments that are only an ACK
  std::uint64_t hellos_sent = 0, hello_acks_sent = 0, resets_sent = 0, closes_sent = 0;
  std::uint64_t hello_retries_sent = 0;  // to hellos without a cookie of ours
  std::uint64_t hello_refusals_sent = 0;
  std::uint64_t rekeys_sent = 0, rekey_answers_sent = 0;
  std::uint64_t probes_sent = 0, probe_answers_sent = 0;
  std::uint64_t parts_sent = 0;
  std::uint64_t grants_given = 0, grants_expired = 0;  // turns of senders of long messages; not used in time
  std::uint64_t turns_asked = 0;                       // times we were held back and asked
  std::uint64_t sizes_lowered = 0, sizes_raised = 0;   // the length of datagrams to a peer changed
  std::uint64_t size_hints = 0;                        // that it should, by ICMP
  std::uint64_t answers_withheld = 0;                  // to strangers: beyond what they may have, or too many at once

  // Resends, by what found the loss.
  std::uint64_t resends = 0;        // = fast + probe + timeout + recut
  std::uint64_t resends_fast = 0;   // threshold of later arrivals, or of time
  std::uint64_t resends_probe = 0;  // tail probe
  std::uint64_t resends_timeout = 0;
  std::uint64_t resends_recut = 0;  // too long for the path since that was measured: again, in parts
  std::uint64_t timeouts = 0;

  // Messages submitted = ended by an outcome or silently (wants_outcome false) + pending.
  std::uint64_t messages_submitted = 0, message_bytes_submitted = 0;
  std::uint64_t messages_ok = 0, messages_canceled = 0, messages_failed = 0;
  std::uint64_t messages_pending = 0;  // now
  std::uint64_t submits_refused = 0;   // answered `again`

  // High-water marks and sessions.
  std::uint64_t window_segments_most = 0, window_bytes_most = 0, reordered_most = 0;
  std::uint64_t sessions_opened = 0, sessions_lost = 0;
  std::uint64_t peers_forgotten = 0;    // unused, for others to have their places
  std::uint64_t half_open_dropped = 0;  // for later ones of the host that had most
  std::uint64_t sessions_sealed = 0;    // of those opened
  std::uint64_t keys_changed = 0;       // of sealed sessions
  std::uint64_t resets_doubted = 0;     // of sealed sessions: the peer was asked
  std::uint64_t round_trips_measured = 0;

  std::uint64_t accepted() const noexcept;  // of whatever kind
  std::uint64_t malformed_sum() const noexcept;
  std::uint64_t refused_sum() const noexcept;
  /// The two identities above, and that every segment sent is acknowledged, abandoned or in flight.
  bool is_consistent() const noexcept;
};

}  // namespace fairlead::link
