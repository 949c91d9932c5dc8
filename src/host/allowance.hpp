#pragma once
// Bounds how many bytes an application may submit to its engine, so that others get their share:
//   - per turn, before others get theirs (deficit round robin: an excess reduces the next turn);
//   - outstanding: bytes that an engine has accepted delay later requests of others;
//   - per second, if the quota says so (a token bucket).
// A single operation may exceed each of these. It is sent when nothing is owed; the excess delays later operations.
//
// Others decide how much an application receives. So received bytes are a debt that is paid with at most half of the
// rate, and that is never more than kReceivedMost of the rate. However much others send, the application may send with
// half of its rate.

#include <cstdint>

#include "base/time.hpp"

namespace fairlead::host {

class Allowance {
 public:
  static constexpr std::int64_t kBytesInTurn = 64 << 10;
  static constexpr std::int64_t kOwedMost =
      64 * kBytesInTurn;  // an application that cancels a long operation must still be served
  static constexpr std::uint64_t kOutstandingMost = 8 << 20;
  static constexpr base::Duration kBurst = std::chrono::milliseconds(100);  // the most that the rate saves up

  static constexpr base::Duration kReceivedMost = std::chrono::seconds(1);  // the most that is owed for received bytes

  /// `bytes_per_second` 0 means unlimited.
  Allowance(std::uint64_t bytes_per_second, base::Instant now);

  /// Begins a turn. An application that is alone has no limit per turn.
  void begin_turn(base::Instant now, bool is_alone);
  /// Returns whether the turn lasts.
  bool has_turn() const noexcept { return is_alone_ || deficit_ > 0; }
  /// Returns whether so many bytes may go to the engine now.
  bool may_send(std::uint64_t bytes) const noexcept {
    return has_turn() && !is_over_rate() && (outstanding_ == 0 || outstanding_ + bytes <= kOutstandingMost);
  }
  void sent(std::uint64_t bytes) noexcept;
  /// Records that sent bytes are complete.
  void ended(std::uint64_t bytes) noexcept { outstanding_ -= bytes; }
  /// Records that others sent it so many bytes.
  void received(std::uint64_t bytes) noexcept;

  /// Returns when it may send again, if only its rate prevents it; else kNever.
  base::Instant next_send_at() const;

 private:
  bool is_over_rate() const noexcept { return rate_ > 0 && tokens_ <= 0; }

  const std::uint64_t rate_;   // bytes per second
  base::Instant refilled_at_;  // when tokens_ was last refilled
  double tokens_ = 0;          // bytes; negative: owed
  double owed_ = 0;            // for received bytes
  std::int64_t deficit_ = 0;   // bytes; negative: owed
  std::uint64_t outstanding_ = 0;
  bool is_alone_ = false;
};

}  // namespace fairlead::host
