#pragma once
// Counters of a link since it was made. Each received datagram is counted exactly once: by kind if accepted, by reason
// in `malformed`, or by reason in `refused`. Each submitted message ends in exactly one outcome. is_consistent() checks
// both. link_counter_rows.hpp describes each counter.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wire/drop_reason.hpp"

namespace fairlead::link {

/// Why a well-formed segment was not accepted; explain() describes each reason.
enum class Refusal : std::uint8_t {
  unknown_token,
  wrong_address,
  duplicate,
  too_old,
  too_new,
  ack_beyond_sent,
  bad_chunk,
  no_slot,
  late_hello_ack,
  unproven_reset,
  table_full,
  notices_full,
  no_memory,
  leaving,

  // Reasons of sealing (docs/seal.md).
  not_sealed,
  unknown_epoch,
  replayed,
  bad_tag,
  bad_handshake,
  other_kind,
  wrong_secret,
  wrong_key,
  unknown_key,
  cannot_seal,
  too_many_handshakes,
};
inline constexpr std::size_t kRefusals = static_cast<std::size_t>(Refusal::too_many_handshakes) + 1;

/// Returns the reason in lower-case words: "unknown token", "duplicate", ...
std::string_view to_string(Refusal refusal) noexcept;
/// Returns a sentence for people: the cause, and the remedy if there is one.
std::string_view explain(Refusal refusal) noexcept;

struct LinkCounters {
  // Datagrams received = the accepted kinds + malformed + refused.
  std::uint64_t datagrams_received = 0, bytes_received = 0;
  std::uint64_t data_received = 0;
  std::uint64_t acks_received = 0;
  std::uint64_t hellos_received = 0, hello_acks_received = 0, hello_retries_received = 0;
  std::uint64_t resets_received = 0, closes_received = 0;
  std::uint64_t probes_received = 0, probe_answers_received = 0;
  std::uint64_t hello_refusals_received = 0;
  std::uint64_t rekeys_received = 0, rekey_answers_received = 0;
  std::uint64_t parts_received = 0;
  std::uint64_t parts_dropped = 0;
  std::uint64_t voids_sent = 0, voids_received = 0;  // segments of messages that their senders took back
  std::array<std::uint64_t, wire::kDropReasons> malformed{};
  std::array<std::uint64_t, kRefusals> refused{};

  // Details of what was accepted.
  std::uint64_t messages_delivered = 0;
  std::uint64_t chunks_delivered = 0;
  std::uint64_t message_bytes_delivered = 0;
  std::uint64_t acks_old = 0;
  std::uint64_t acks_repeated = 0;
  std::uint64_t duplicates_reported = 0;

  // Datagrams sent.
  std::uint64_t datagrams_sent = 0, bytes_sent = 0, trains_sent = 0;
  std::uint64_t trains_returned = 0;
  std::uint64_t segments_sent = 0;
  std::uint64_t segments_acked = 0;
  std::uint64_t segments_abandoned = 0;
  std::uint64_t segments_in_flight = 0;
  std::uint64_t whole_sent = 0, chunks_sent = 0;
  std::uint64_t acks_sent = 0;
  std::uint64_t hellos_sent = 0, hello_acks_sent = 0, resets_sent = 0, closes_sent = 0;
  std::uint64_t hello_retries_sent = 0;
  std::uint64_t hello_refusals_sent = 0;
  std::uint64_t rekeys_sent = 0, rekey_answers_sent = 0;
  std::uint64_t probes_sent = 0, probe_answers_sent = 0;
  std::uint64_t parts_sent = 0;
  std::uint64_t grants_given = 0, grants_expired = 0;
  std::uint64_t turns_asked = 0;
  std::uint64_t sizes_lowered = 0, sizes_raised = 0;
  std::uint64_t size_hints = 0;
  std::uint64_t answers_withheld = 0;

  // Resends, by the cause that triggered them.
  std::uint64_t resends = 0;
  std::uint64_t resends_fast = 0;
  std::uint64_t resends_probe = 0;
  std::uint64_t resends_timeout = 0;
  std::uint64_t resends_recut = 0;
  std::uint64_t timeouts = 0;

  // Messages submitted = ended (with an outcome, or silently if wants_outcome is false) + pending.
  std::uint64_t messages_submitted = 0, message_bytes_submitted = 0;
  std::uint64_t messages_ok = 0, messages_canceled = 0, messages_failed = 0;
  std::uint64_t messages_pending = 0;
  std::uint64_t submits_refused = 0;

  // High-water marks and sessions.
  std::uint64_t window_segments_most = 0, window_bytes_most = 0, reordered_most = 0;
  std::uint64_t sessions_opened = 0, sessions_lost = 0;
  std::uint64_t peers_forgotten = 0;
  std::uint64_t half_open_dropped = 0;
  std::uint64_t sessions_sealed = 0;
  std::uint64_t keys_changed = 0;
  std::uint64_t resets_doubted = 0;
  std::uint64_t round_trips_measured = 0;

  void refuse(Refusal reason) noexcept { ++refused[static_cast<std::size_t>(reason)]; }

  std::uint64_t accepted() const noexcept;  // datagrams of all kinds
  std::uint64_t malformed_sum() const noexcept;
  std::uint64_t refused_sum() const noexcept;
  /// Checks the identities above, that each segment sent is acknowledged, abandoned or in flight, and the sum of the
  /// resends.
  bool is_consistent() const noexcept;
};

}  // namespace fairlead::link
