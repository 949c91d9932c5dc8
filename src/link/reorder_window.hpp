#pragma once
// How long to wait for a segment that later ones have overtaken before it counts as lost: in positions and in time.
//
// Both begin at their least (packet_threshold, 9/8 of a round trip) and follow what the path shows. A segment that
// comes late, but comes, shows its distance; one that was sent again in vain shows it only when the peer reports the
// duplicate, so until then it is a suspicion: a lost one whose repair came early looks the same. What is not seen any
// more fades away, by a quarter every kFadeAfter transmissions.

#include <cstdint>

#include "base/time.hpp"

namespace fairlead::link {

class ReorderWindow {
 public:
  static constexpr std::uint64_t kFadeAfter = 4096;
  static constexpr std::uint32_t kRoundTripsMost = 8;  // bound of the patience in time

  /// A segment arrived after `distance` later ones were known to have arrived, so long after it was sent.
  void saw(std::uint64_t distance, base::Duration age);
  /// The same, of a segment whose resend cannot have arrived yet.
  void suspect(std::uint64_t distance, base::Duration age);
  /// The peer says that a resend was needless. Without a suspicion both patiences double, once per round trip.
  void confirm(base::Duration round_trip, base::Instant now);
  /// `order`: transmissions so far.
  void fade(std::uint64_t order);

  std::uint64_t positions(std::uint32_t least) const;
  base::Duration patience(base::Duration round_trip) const;

 private:
  struct Distance {
    std::uint32_t positions = 0;
    base::Duration age{};

    void widen(const Distance& other);
  };
  Distance known_, recent_, suspected_;
  base::Instant doubled_at_;
  std::uint64_t fade_at_ = kFadeAfter;
};

}  // namespace fairlead::link
