#include "link/reassembly.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::link {

Reassembly::Verdict Reassembly::judge(const wire::Record& record) const {
  const wire::Chunk& chunk = record.chunk;
  const std::uint64_t length = record.bytes.size();
  if (length == 0 || chunk.size < length || chunk.offset > chunk.size - length) return Verdict::bad_chunk;
  if (chunk.slot >= slot_count_) return Verdict::no_slot;
  if (!slots_ || !slots_[chunk.slot].is_open) return Verdict::fits;
  const Slot& slot = slots_[chunk.slot];
  if (slot.message != chunk.message) return Verdict::no_slot;
  const bool agrees = slot.size == chunk.size && slot.envelope == record.envelope && length <= slot.bytes_left;
  return agrees ? Verdict::fits : Verdict::bad_chunk;
}

Reassembly::Slot Reassembly::take(const wire::Record& record) {
  if (!slots_) slots_ = std::make_unique<Slot[]>(slot_count_);
  Slot& slot = slots_[record.chunk.slot];
  const Slot before = slot;
  if (!slot.is_open) {
    slot = {.is_open = true,
            .message = record.chunk.message,
            .size = record.chunk.size,
            .bytes_left = record.chunk.size,
            .target = 0,
            .looks = 0,
            .envelope = record.envelope};
    ++open_count_;
  }
  slot.bytes_left -= record.bytes.size();
  slot.looks = 0;
  if (slot.bytes_left == 0) close(record.chunk.slot);
  return before;
}

void Reassembly::set_target(std::uint32_t slot, std::uint64_t target) {
  if (slots_ && slot < slot_count_ && slots_[slot].is_open) slots_[slot].target = target;
}

std::uint8_t Reassembly::look() {
  std::uint8_t most = 0;
  for (std::uint32_t i = 0; i < slot_count_ && open_count_ != 0; ++i) {
    if (slots_[i].is_open) most = std::max(most, ++slots_[i].looks);
  }
  return most;
}

Reassembly::Slot Reassembly::close(std::uint32_t slot) {
  if (!slots_ || !slots_[slot].is_open) return {};
  --open_count_;
  return std::exchange(slots_[slot], Slot{});
}

void Reassembly::release_slots() {
  if (open_count_ == 0) slots_.reset();
}

}  // namespace fairlead::link
