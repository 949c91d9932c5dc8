#pragma once
// The chunked messages that one peer has open towards us. The sender names the slot; it may use one again only when
// every chunk of the message before is acknowledged, thus was received. Bytes are counted, not kept: the engine places
// them. A sequence is accepted once and a chunk is never cut anew, so chunks do not overlap and the count is exact.
// What a sender has taken back is remembered until the session ends, or its slot has the next such message.

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
    std::uint64_t target = 0;  // the engine's word
    std::uint8_t looks = 0;    // in vain, since something came
    wire::Envelope envelope;
    bool has_void = false;     // a message in this slot was taken back ...
    std::uint32_t voided = 0;  // ... the last one: this
  };
  enum class Verdict : std::uint8_t { fits, bad_chunk, no_slot };

  explicit Reassembly(std::uint32_t slots) : slot_count_(slots) {}

  Verdict judge(const wire::Record& record) const;
  /// Takes a chunk that fits; the slot closes with its last byte. Returns the slot as it was before.
  Slot take(const wire::Record& record);
  /// A message that its sender has taken back: chunks of it that are late are not taken. The slot as it was, if the
  /// message was open in it.
  Slot take_void(const wire::Chunk& chunk);
  bool is_void(const wire::Chunk& chunk) const {
    return slots_ && slots_[chunk.slot].has_void && slots_[chunk.slot].voided == chunk.message;
  }
  void set_target(std::uint32_t slot, std::uint64_t target);

  /// Counts for each that is open that nothing came since the last look; the most so far.
  std::uint8_t look();

  std::uint32_t open_count() const { return open_count_; }
  bool has_slots() const { return slots_ != nullptr && !has_voids_; }
  std::uint32_t slot_count() const { return slot_count_; }
  /// All slots, for the next program in this process; none where nothing has come in chunks.
  std::span<const Slot> slots() const { return {slots_.get(), slots_ ? slot_count_ : 0}; }
  /// As many as there are, none of them open yet. False if they contradict themselves.
  bool restore(std::span<const Slot> slots);
  /// Closes a slot; its state if it was open.
  Slot close(std::uint32_t slot);
  /// Not while late chunks of what was taken back may still come.
  void release_slots();
  /// The session has ended.
  void reset();

 private:
  std::uint32_t slot_count_;
  std::uint32_t open_count_ = 0;
  bool has_voids_ = false;
  std::unique_ptr<Slot[]> slots_;  // made at the first chunk
};

}  // namespace fairlead::link
