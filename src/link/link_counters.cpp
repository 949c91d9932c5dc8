#include "link/link_counters.hpp"

#include <numeric>

namespace fairlead::link {

namespace {

struct RefusalRow {
  std::string_view text, sentence;
};

// In the order of the enumerators of Refusal.
constexpr std::array<RefusalRow, kRefusals> kRefusalRows{{
    {"unknown token", "a token of an earlier session, of a restarted peer, or a guess"},
    {"wrong address", "a valid token from a wrong address: an attacker, or the peer's address has changed"},
    {"duplicate", "a segment that had already arrived"},
    {"too old", "a segment before the window: it had already arrived, and its acknowledgement was lost"},
    {"too new", "a segment beyond the window: the peer violates the window"},
    {"ack beyond sent", "an acknowledgement of segments that were never sent"},
    {"bad chunk", "a chunk that does not agree with the others of its message, or with its bounds"},
    {"no slot", "a chunk of a long message in a slot that is taken, or beyond those granted"},
    {"late hello ack", "an answer to a hello that is no longer pending"},
    {"unproven reset", "a reset or close that does not know our session"},
    {"table full", "there was no room for another peer or half-open session"},
    {"notices full", "the engine has not fetched its notices"},
    {"no memory", "there was no memory to process it: it counts as lost, and the peer retransmits it"},
    {"leaving", "a hello to an engine that is ending"},
    {"not sealed",
     "unsealed, where sealing is required: set FAIRLEAD_SEAL at the sender, or see FAIRLEAD_SEAL_REQUIRE"},
    {"unknown epoch", "sealed with unknown or expired keys: of an earlier session, or very late"},
    {"replayed",
     "already received, or too old to check: the network duplicates datagrams, or an attacker replays them"},
    {"bad tag",
     "changed in transit, or not sent by the peer: a faulty link, or an attacker on the path; its content was not "
     "used"},
    {"bad handshake", "a handshake message that does not match the previous ones: late, repeated or forged"},
    {"other kind", "one end seals with psk:, the other with x25519: set FAIRLEAD_SEAL alike at both ends"},
    {"wrong secret", "a hello with another pre-shared key: give both ends the same file"},
    {"wrong key",
     "a hello for another public key than ours: the sender's known_peers needs our line (`fairlead keygen "
     "--public FILE` prints it)"},
    {"unknown key", "a hello with a public key that known_peers does not have for that address: add the sender's line"},
    {"cannot seal", "a sealed hello, but this engine has no key: set FAIRLEAD_SEAL"},
    {"too many handshakes", "more sealed hellos than the limit per second: many peers at once, or a flood"},
}};
static_assert(!kRefusalRows.back().sentence.empty());

}  // namespace

std::string_view to_string(Refusal refusal) noexcept {
  const auto index = static_cast<std::size_t>(refusal);
  return index < kRefusals ? kRefusalRows[index].text : "unknown refusal";
}

std::string_view explain(Refusal refusal) noexcept {
  const auto index = static_cast<std::size_t>(refusal);
  return index < kRefusals ? kRefusalRows[index].sentence : std::string_view();
}

std::uint64_t LinkCounters::malformed_sum() const noexcept {
  return std::accumulate(malformed.begin(), malformed.end(), std::uint64_t{0});
}

std::uint64_t LinkCounters::refused_sum() const noexcept {
  return std::accumulate(refused.begin(), refused.end(), std::uint64_t{0});
}

std::uint64_t LinkCounters::accepted() const noexcept {
  return data_received + acks_received + hellos_received + hello_acks_received + hello_retries_received +
         resets_received + closes_received + probes_received + probe_answers_received + parts_received +
         hello_refusals_received + rekeys_received + rekey_answers_received;
}

bool LinkCounters::is_consistent() const noexcept {
  return datagrams_received == accepted() + malformed_sum() + refused_sum() &&
         messages_submitted == messages_ok + messages_canceled + messages_failed + messages_pending &&
         segments_sent == segments_acked + segments_abandoned + segments_in_flight &&
         resends == resends_fast + resends_probe + resends_timeout + resends_recut;
}

}  // namespace fairlead::link
