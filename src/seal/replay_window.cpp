#include "seal/replay_window.hpp"

#include <algorithm>

namespace fairlead::seal {

std::uint64_t ReplayWindow::complete(std::uint32_t low) const {
  constexpr std::uint64_t kTurn = std::uint64_t{1} << 32;
  const std::uint64_t near = (end_ & ~(kTurn - 1)) | low;
  if (near + kTurn / 2 <= end_) return near + kTurn;
  if (near > end_ + kTurn / 2 && near >= kTurn) return near - kTurn;
  return near;
}

bool ReplayWindow::is_new(std::uint64_t number) const {
  if (number >= end_) return true;
  if (end_ - number > kReach) return false;
  return ((word(number) >> (number % 64)) & 1) == 0;
}

void ReplayWindow::mark(std::uint64_t number) {
  if (number >= end_) {
    // Clears the words between the old end and the new one.
    const std::uint64_t first = (end_ + 63) / 64, last = number / 64;
    const std::uint64_t from = std::max(first, last >= kWords ? last - kWords + 1 : 0);
    for (std::uint64_t i = from; i <= last; ++i) words_[i % kWords] = 0;
    end_ = number + 1;
  }
  word(number) |= std::uint64_t{1} << (number % 64);
}

}  // namespace fairlead::seal
