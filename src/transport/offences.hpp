#pragma once
// Offences of peers against the protocol: wrong secrets, counted by kind and charged to each peer's budget, and peers
// to be expelled. The code that notices an offence is in the middle of work with that peer, so the engine expels it at
// the next opportunity. A peer may come back; its budget continues as long as its handle is the same.

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
/// Secrets that a message has to show, by what they protect.
enum class Secret : std::uint8_t { answer, tag, exposure, region };

/// For people: "the peer ...".
std::string_view describe(Offence offence);
/// For the statistics: "guesses", "exposures".
std::string_view to_string(Offence offence);
std::string_view to_string(Secret secret);

class Offences {
 public:
  static constexpr std::size_t kKinds = 4;  // number of offences, and of secrets
  static constexpr std::size_t kCondemnedMost = 64;

  explicit Offences(std::uint32_t link_peers_max) : suspects_(link_peers_max) { condemned_.reserve(kCondemnedMost); }

  struct Condemned {
    link::PeerHandle peer;
    Offence offence = Offence::none;
  };

  /// Charges a wrong secret. Secrets have 64 bits, except keys of regions, for which verbs prescribes 32. Those cost so
  /// much that a thousand exhaust the budget. A peer without budget is condemned.
  void note_wrong_secret(link::PeerHandle peer, Secret secret, base::Instant now);
  /// Marks a peer to be expelled at the next opportunity; its first offence counts. If too many are condemned already,
  /// the peer is condemned when it goes on.
  void condemn(link::PeerHandle peer, Offence offence);
  bool is_anyone_condemned() const { return !condemned_.empty(); }
  /// Takes the next condemned peer, and counts it as expelled.
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
