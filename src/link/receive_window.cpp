#include "link/receive_window.hpp"

#include <bit>

#include "base/ensure.hpp"

namespace fairlead::link {

void ReceiveWindow::open(wire::Sequence first, std::uint32_t capacity) {
  ENSURE(std::has_single_bit(capacity) && capacity >= 64, "a window of {} segments", capacity);
  next_ = highest_ = first;
  capacity_ = capacity;
  ahead_ = 0;
  bits_.reset();
}

bool ReceiveWindow::has(wire::Sequence sequence) const {
  const std::uint32_t index = sequence.value & (capacity_ - 1);
  return ((bits_[index / 64] >> (index % 64)) & 1) != 0;
}

ReceiveWindow::Verdict ReceiveWindow::judge(wire::Sequence sequence) const {
  const std::int32_t distance = wire::distance(next_, sequence);
  if (distance < 0) return Verdict::too_old;
  if (distance >= static_cast<std::int32_t>(capacity_)) return Verdict::too_new;
  if (ahead_ != 0 && has(sequence)) return Verdict::duplicate;
  return Verdict::fresh;
}

void ReceiveWindow::reserve(wire::Sequence sequence) {
  if (sequence != next_ && !bits_) [[unlikely]]
    bits_ = std::make_unique<std::uint64_t[]>(capacity_ / 64);
}

void ReceiveWindow::mark(wire::Sequence sequence) {
  reserve(sequence);
  if (sequence != next_) [[unlikely]] {
    const std::uint32_t index = sequence.value & (capacity_ - 1);
    bits_[index / 64] |= std::uint64_t{1} << (index % 64);
    if (ahead_ == 0 || wire::distance(highest_, sequence) > 0) highest_ = sequence;
    ++ahead_;
    return;
  }
  ++next_;
  while (ahead_ != 0 && has(next_)) {
    const std::uint32_t index = next_.value & (capacity_ - 1);
    bits_[index / 64] &= ~(std::uint64_t{1} << (index % 64));
    --ahead_;
    ++next_;
  }
}

std::uint64_t ReceiveWindow::bitmap(std::uint32_t word) const {
  if (ahead_ == 0) return 0;
  const std::uint32_t first = (next_.value + 1 + 64 * word) & (capacity_ - 1);
  const std::uint32_t shift = first % 64;
  const std::uint64_t low = bits_[first / 64] >> shift;
  if (shift == 0) return low;
  return low | (bits_[((first / 64) + 1) & (capacity_ / 64 - 1)] << (64 - shift));
}

std::uint32_t ReceiveWindow::bitmap_words() const {
  if (ahead_ == 0) return 0;
  return (static_cast<std::uint32_t>(wire::distance(next_, highest_)) + 63) / 64;
}

void ReceiveWindow::release_bitmap() {
  if (ahead_ == 0) bits_.reset();
}

}  // namespace fairlead::link
