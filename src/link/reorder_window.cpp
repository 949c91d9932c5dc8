#include "link/reorder_window.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::link {
namespace {

constexpr std::uint64_t kPositionsMost = 1U << 16;
constexpr std::uint32_t kPositionsFirst = 3;  // doubled while no distance is known

}  // namespace

void ReorderWindow::Distance::widen(const Distance& other) {
  positions = std::max(positions, other.positions);
  age = std::max(age, other.age);
}

void ReorderWindow::saw(std::uint64_t distance, base::Duration age) {
  recent_.widen({static_cast<std::uint32_t>(std::min(distance, kPositionsMost)), age});
  known_.widen(recent_);
}

void ReorderWindow::suspect(std::uint64_t distance, base::Duration age) {
  suspected_.widen({static_cast<std::uint32_t>(std::min(distance, kPositionsMost)), age});
}

void ReorderWindow::confirm(base::Duration round_trip, base::Instant now) {
  if (suspected_.positions != 0) {
    const Distance proven = std::exchange(suspected_, Distance{});
    saw(proven.positions, proven.age);
    return;
  }
  if (now - doubled_at_ < round_trip) return;
  doubled_at_ = now;
  saw(std::uint64_t{2} * std::max(known_.positions, kPositionsFirst), 2 * std::max(known_.age, round_trip / 2));
}

void ReorderWindow::fade(std::uint64_t order) {
  if (order < fade_at_) return;
  fade_at_ = order + kFadeAfter;
  known_ = {known_.positions - (known_.positions + 3) / 4, known_.age - known_.age / 4};
  known_.widen(recent_);
  recent_ = {};
  suspected_ = {};
}

std::uint64_t ReorderWindow::positions(std::uint32_t least) const {
  return std::max<std::uint64_t>(least, known_.positions + known_.positions / 4 + 1);
}

base::Duration ReorderWindow::patience(base::Duration round_trip) const {
  const base::Duration least = round_trip + round_trip / 8;
  return std::min(std::max(least, known_.age + known_.age / 4),
                  kRoundTripsMost * std::max(round_trip, base::Duration(1)));
}

}  // namespace fairlead::link
