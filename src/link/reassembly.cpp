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
            .envelope = record.envelope,
            .has_void = slot.has_void,
            .voided = slot.voided};
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
  Slot empty;
  empty.has_void = slots_[slot].has_void;
  empty.voided = slots_[slot].voided;
  return std::exchange(slots_[slot], empty);
}

Reassembly::Slot Reassembly::take_void(const wire::Chunk& chunk) {
  if (chunk.slot >= slot_count_) return {};
  if (!slots_) slots_ = std::make_unique<Slot[]>(slot_count_);
  Slot& slot = slots_[chunk.slot];
  slot.has_void = has_voids_ = true;
  slot.voided = chunk.message;
  return slot.is_open && slot.message == chunk.message ? close(chunk.slot) : Slot{};
}

bool Reassembly::restore(std::span<const Slot> slots) {
  const bool is_right = slots.size() == slot_count_ && std::ranges::none_of(slots, [](const Slot& slot) {
                          return slot.is_open && (slot.bytes_left == 0 || slot.bytes_left > slot.size);
                        });
  if (!is_right) return false;
  slots_ = std::make_unique<Slot[]>(slot_count_);
  std::ranges::copy(slots, slots_.get());
  open_count_ = static_cast<std::uint32_t>(std::ranges::count_if(slots, &Slot::is_open));
  has_voids_ = std::ranges::any_of(slots, &Slot::has_void);
  return true;
}

void Reassembly::release_slots() {
  if (open_count_ == 0 && !has_voids_) slots_.reset();
}

void Reassembly::reset() {
  slots_.reset();
  has_voids_ = false;
}

}  // namespace fairlead::link
