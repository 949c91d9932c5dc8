#pragma once
// What peers did that none should: wrong secrets, counted by kind and paid from a budget of each peer, and peers that
// are to be expelled for what they did. Whoever notices an offence is in the middle of something with that peer, so the
// engine expels it at the next occasion. A peer may come back; its budget does not begin anew within one session.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "link/link.hpp"
#include "transport/by_peer.hpp"
#include "transport/guess_budget.hpp"

namespace fairlead::transport {

enum class Offence : std::uint8_t { none, takes_no_answers, guesses, holds_memory };
/// What a message has to show, by what it is good for.
enum class Secret : std::uint8_t { answer, tag, exposure, region };

/// For people: "the peer ...".
std::string_view describe(Offence offence);
/// In the statistics: "guesses", "exposures".
std::string_view to_string(Offence offence);
std::string_view to_string(Secret secret);

class Offences {
 public:
  static constexpr std::size_t kKinds = 4;  // of offences, and of secrets
  static constexpr std::size_t kCondemnedMost = 64;

  explicit Offences(std::uint32_t link_peers_max) : suspects_(link_peers_max) { condemned_.reserve(kCondemnedMost); }

  struct Condemned {
    link::PeerHandle peer;
    Offence offence = Offence::none;
  };

  /// Secrets have 64 bits, but for the keys of regions, whose 32 verbs prescribes: those cost so much that a thousand
  /// are the most at a time. A peer that has spent its budget is condemned.
  void note_wrong_secret(link::PeerHandle peer, Secret secret, base::Instant now);
  /// It is expelled at the next occasion; the first offence counts. While many are, others are when they go on.
  void condemn(link::PeerHandle peer, Offence offence);
  bool is_anyone_condemned() const { return !condemned_.empty(); }
  /// The next one, who is counted as expelled.
  std::optional<Condemned> take_condemned();

  std::uint64_t wrong_secrets(Secret secret) const { return wrong_secrets_[static_cast<std::size_t>(secret)]; }
  std::uint64_t expelled_for(Offence offence) const { return expelled_[static_cast<std::size_t>(offence)]; }

 private:
  struct Suspect {
    std::uint32_t generation = 0;  // of the peer
    GuessBudget budget;
  };

  std::vector<Condemned> condemned_;
  ByPeer<Suspect> suspects_;
  std::array<std::uint64_t, kKinds> wrong_secrets_{};
  std::array<std::uint64_t, kKinds> expelled_{};
};

}  // namespace fairlead::transport
