#include "host/allowance.hpp"

#include <algorithm>
#include <chrono>

namespace fairlead::host {
namespace {

double seconds(base::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Allowance::Allowance(std::uint64_t bytes_per_second, base::Instant now)
    : rate_(bytes_per_second), refilled_at_(now), tokens_(static_cast<double>(bytes_per_second) * seconds(kBurst)) {}

void Allowance::begin_turn(base::Instant now, bool is_alone) {
  is_alone_ = is_alone;
  deficit_ = std::min(is_alone ? 0 : deficit_, std::int64_t{0}) + kBytesInTurn;
  if (rate_ == 0) return;
  const double rate = static_cast<double>(rate_);
  const double gained = rate * seconds(now - refilled_at_), paid = std::min(owed_, gained / 2);
  owed_ -= paid;
  tokens_ = std::min(tokens_ + gained - paid, rate * seconds(kBurst));
  refilled_at_ = now;
}

void Allowance::sent(std::uint64_t bytes) noexcept {
  outstanding_ += bytes;
  if (!is_alone_) deficit_ -= static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, kOwedMost));
  if (rate_ > 0) tokens_ -= static_cast<double>(bytes);
}

void Allowance::received(std::uint64_t bytes) noexcept {
  owed_ = std::min(owed_ + static_cast<double>(bytes), static_cast<double>(rate_) * seconds(kReceivedMost));
}

base::Instant Allowance::next_send_at() const {
  if (!is_over_rate()) return base::kNever;
  constexpr double kSecondsMost = 3600;  // a longer wait is computed again
  const double wanted = 1 - tokens_;
  const double wait = (wanted + std::min(wanted, owed_)) / static_cast<double>(rate_);
  return refilled_at_ +
         std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(std::min(wait, kSecondsMost)));
}

}  // namespace fairlead::host
