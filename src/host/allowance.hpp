#pragma once
// How many bytes an application may hand to its engine, so that others have their part of it:
//   - in one turn, before the others have theirs (deficit round robin: what it takes too much is missing next time);
//   - outstanding: what an engine has taken stands before what others ask for later;
//   - a second, if its quota says so (a token bucket).
// A single operation may be longer than any of these; it goes when nothing is owed, and is owed for afterwards.

#include <cstdint>

#include "base/time.hpp"

namespace fairlead::host {

class Allowance {
 public:
  static constexpr std::int64_t kBytesInTurn = 64 << 10;
  static constexpr std::int64_t kOwedMost =
      64 * kBytesInTurn;  // of turns: who cancels a long operation has to be heard
  static constexpr std::uint64_t kOutstandingMost = 8 << 20;
  static constexpr base::Duration kBurst = std::chrono::milliseconds(100);  // of the rate, saved up at most

  /// `bytes_per_second` 0: unlimited.
  Allowance(std::uint64_t bytes_per_second, base::Instant now);

  /// A turn begins. One that is alone takes as long a turn as it likes.
  void begin_turn(base::Instant now, bool is_alone);
  /// Whether its turn lasts.
  bool has_turn() const noexcept { return is_alone_ || deficit_ > 0; }
  /// Whether so many bytes may go to the engine now.
  bool may_send(std::uint64_t bytes) const noexcept {
    return has_turn() && !is_over_rate() && (outstanding_ == 0 || outstanding_ + bytes <= kOutstandingMost);
  }
  void sent(std::uint64_t bytes) noexcept;
  /// What was sent has ended.
  void ended(std::uint64_t bytes) noexcept { outstanding_ -= bytes; }
  /// Others sent it so many.
  void received(std::uint64_t bytes) noexcept { spend_tokens(bytes); }

  /// When it may send again, if only its rate forbids it; kNever if that does not.
  base::Instant next_send_at() const;

 private:
  bool is_over_rate() const noexcept { return rate_ > 0 && tokens_ <= 0; }
  void spend_tokens(std::uint64_t bytes) noexcept;

  const std::uint64_t rate_;   // bytes a second
  base::Instant refilled_at_;  // tokens_
  double tokens_ = 0;          // bytes; below zero: owed
  std::int64_t deficit_ = 0;   // bytes; below zero: owed
  std::uint64_t outstanding_ = 0;
  bool is_alone_ = false;
};

}  // namespace fairlead::host
