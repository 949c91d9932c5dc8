#pragma once
// The reordering window: how far later segments may overtake one before it counts as lost, in positions and in time.
//
// Both limits begin at their minimum (packet_threshold, 9/8 of a round trip) and follow the reordering that is seen. A
// segment that arrives late shows its distance. For a segment that was resent needlessly, the distance is only a
// suspicion until the peer reports the duplicate: a segment that was lost and repaired early looks the same. Distances
// that are not seen any more fade, by a quarter every kFadeAfter transmissions.

#include <cstdint>

#include "base/time.hpp"

namespace fairlead::link {

class ReorderWindow {
 public:
  static constexpr std::uint64_t kFadeAfter = 4096;
  static constexpr std::uint32_t kRoundTripsMost = 8;  // upper limit of the patience

  /// Records that a segment arrived when one transmitted `distance` later had already been acknowledged. `age`: time
  /// since it was sent.
  void saw(std::uint64_t distance, base::Duration age);
  /// Records the same for a resent segment whose resend cannot have arrived yet.
  void suspect(std::uint64_t distance, base::Duration age);
  /// The peer reports a needless resend: confirms the suspicion. Without a suspicion both limits double, at most once
  /// per round trip.
  void confirm(base::Duration round_trip, base::Instant now);
  /// Lets old distances fade. `order`: transmissions so far.
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
