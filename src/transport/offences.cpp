#include "transport/offences.hpp"

#include <algorithm>

namespace fairlead::transport {

std::string_view describe(Offence offence) {
  switch (offence) {
    case Offence::takes_no_answers:
      return "sent requests but did not acknowledge the answers: is it stopped, or its receive buffer too small?";
    case Offence::guesses:
      return "sent wrong keys repeatedly: does it use descriptors, tags or region keys of another job or of an earlier "
             "process?";
    case Offence::holds_memory:
      return "did not acknowledge cancelled operations in time: is it overloaded?";
    case Offence::none:
      break;
  }
  return "did nothing wrong";
}

std::string_view to_string(Offence offence) {
  constexpr std::array<std::string_view, Offences::kKinds> kNames{"none", "takes_no_answers", "guesses",
                                                                  "holds_memory"};
  return kNames[static_cast<std::size_t>(offence)];
}

std::string_view to_string(Secret secret) {
  constexpr std::array<std::string_view, Offences::kKinds> kNames{"answers", "tags", "exposures", "regions"};
  return kNames[static_cast<std::size_t>(secret)];
}

/// Honest replies go astray when an endpoint is closed, and keys when their memory is withdrawn. Tags are also wrong
/// when programs start in any order and retry until they are accepted.
void Offences::note_wrong_secret(link::PeerHandle peer, Secret secret, base::Instant now) {
  constexpr std::array<std::int64_t, kKinds> kCosts{16, 1, 1, 64};
  const auto kind = static_cast<std::size_t>(secret);
  ++wrong_secrets_[kind];
  Suspect& suspect = suspects_[peer.slot];
  if (suspect.generation != peer.generation) suspect = {.generation = peer.generation, .budget = {}};
  if (!suspect.budget.spend(kCosts[kind], now)) condemn(peer, Offence::guesses);
}

void Offences::condemn(link::PeerHandle peer, Offence offence) {
  if (std::ranges::any_of(condemned_, [&](const Condemned& one) { return one.peer == peer; })) return;
  if (condemned_.size() == kCondemnedMost) return;
  condemned_.push_back({peer, offence});
}

std::optional<Offences::Condemned> Offences::take_condemned() {
  if (condemned_.empty()) return std::nullopt;
  const Condemned first = condemned_.front();
  condemned_.erase(condemned_.begin());
  ++expelled_[static_cast<std::size_t>(first.offence)];
  return first;
}

}  // namespace fairlead::transport
