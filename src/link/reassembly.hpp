#pragma once
// The chunked messages that one peer has open towards this side. The sender names the slot. It may reuse a slot only
// when every chunk of the previous message is acknowledged, so all were received. Bytes are counted, not stored: the
// engine copies them. A sequence is accepted once and a chunk is never cut again, so chunks do not overlap and the
// count is exact. A message that its sender took back is remembered until the session ends, or until its slot has the
// next such message.

#include <cstdint>
#include <memory>
#include <span>

#include "wire/record.hpp"

namespace fairlead::link {

class Reassembly {
 public:
  struct Slot {
    bool is_open = false;
    std::uint32_t message = 0;
    std::uint64_t size = 0;
    std::uint64_t bytes_left = 0;
    std::uint64_t target = 0;  // the engine's value, see set_target()
    std::uint8_t looks = 0;    // stall checks since the last chunk
    wire::Envelope envelope;
    bool has_void = false;     // a message in this slot was taken back ...
    std::uint32_t voided = 0;  // ... the last one has this number
  };
  enum class Verdict : std::uint8_t { fits, bad_chunk, no_slot };

  explicit Reassembly(std::uint32_t slots) : slot_count_(slots) {}

  Verdict judge(const wire::Record& record) const;
  /// Accepts a chunk that fits; its last byte closes the slot. Returns the slot as it was before.
  Slot take(const wire::Record& record);
  /// Marks a message as taken back, so that late chunks of it are dropped. Returns the slot as it was, if the message
  /// was open in it.
  Slot take_void(const wire::Chunk& chunk);
  bool is_void(const wire::Chunk& chunk) const {
    return slots_ && slots_[chunk.slot].has_void && slots_[chunk.slot].voided == chunk.message;
  }
  void set_target(std::uint32_t slot, std::uint64_t target);

  /// Counts one stall check for each open message; returns the highest count.
  std::uint8_t look();

  std::uint32_t open_count() const { return open_count_; }
  bool has_slots() const { return slots_ != nullptr && !has_voids_; }
  std::uint32_t slot_count() const { return slot_count_; }
  /// All slots, for the next program in this process; empty if no chunk has arrived.
  std::span<const Slot> slots() const { return {slots_.get(), slots_ ? slot_count_ : 0}; }
  /// Restores the slots; none may be open yet. Returns false if they are inconsistent.
  bool restore(std::span<const Slot> slots);
  /// Closes a slot; returns its state if it was open.
  Slot close(std::uint32_t slot);
  /// Frees the slots, unless late chunks of a message taken back may still come.
  void release_slots();
  /// Frees everything after the session has ended.
  void reset();

 private:
  std::uint32_t slot_count_;
  std::uint32_t open_count_ = 0;
  bool has_voids_ = false;
  std::unique_ptr<Slot[]> slots_;  // allocated at the first chunk
};

}  // namespace fairlead::link
