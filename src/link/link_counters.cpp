#include "link/link_counters.hpp"

#include <numeric>

namespace fairlead::link {

std::string_view to_string(Refusal refusal) noexcept {
  static constexpr std::array<std::string_view, kRefusals> kTexts{
      "unknown token",
      "wrong address",
      "duplicate",
      "too old",
      "too new",
      "ack beyond sent",
      "bad chunk",
      "no slot",
      "late hello ack",
      "unproven reset",
      "table full",
      "notices full",
      "not sealed",
      "unknown epoch",
      "replayed",
      "bad tag",
      "bad handshake",
      "other kind",
      "wrong secret",
      "wrong key",
      "unknown key",
      "cannot seal",
      "too many handshakes",
  };
  const auto index = static_cast<std::size_t>(refusal);
  return index < kTexts.size() ? kTexts[index] : "unknown refusal";
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
