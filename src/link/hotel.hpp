#pragma once
// The retransmission buffer of all peers together, named after usnic's hotel (docs/link.md): a segment has a room from
// its submission to its ACK. Check-in and check-out are O(1). Timers belong to peers, not to rooms (expiry.hpp).

#include "link/object_pool.hpp"
#include "link/segment.hpp"

namespace fairlead::link {

class Hotel {
 public:
  explicit Hotel(std::size_t rooms_max) : rooms_(rooms_max), blocks_(rooms_max) {}

  /// Returns a room for a segment that refers to the sender's memory, or null if the hotel is full.
  Segment* check_in(Peer& peer) {
    Segment* segment = rooms_.take();
    if (segment == nullptr) [[unlikely]]
      return nullptr;
    segment->peer = &peer;
    segment->use = ++taken_;
    segment->records = 0;
    segment->numbers = 0;
    segment->outcomes_wanted = 0;
    segment->given_up = 0;
    segment->ordered_before = 0;
    segment->transmissions = 0;
    segment->is_waiting = false;
    segment->is_ended = false;
    segment->payload_bytes = 0;
    segment->piece_count = 0;
    segment->parts_sent = 0;
    return segment;
  }

  /// Returns a room with a block for short messages, or null if the hotel or the memory is exhausted.
  Segment* check_in_with_block(Peer& peer) {
    Segment* segment = check_in(peer);
    if (segment == nullptr) [[unlikely]]
      return nullptr;
    segment->block = blocks_.take();  // there are as many blocks as rooms, so this fails only without memory
    if (segment->block == nullptr) [[unlikely]] {
      check_out(*segment);
      return nullptr;
    }
    return segment;
  }

  void check_out(Segment& segment) {
    segment.hook.unlink();
    segment.message = nullptr;
    if (segment.block != nullptr) {
      blocks_.give(segment.block);
      segment.block = nullptr;
    }
    rooms_.give(&segment);
  }

  /// Returns the segment in a room, or null if it has no block.
  Segment* with_block(std::uint32_t room) {
    Segment* const segment = rooms_.at(room);
    return segment != nullptr && segment->block != nullptr ? segment : nullptr;
  }
  std::uint32_t rooms() const { return static_cast<std::uint32_t>(rooms_.made()); }
  /// How often a room was taken. A hotel in the next program continues this count.
  std::uint32_t taken() const { return taken_; }
  void skip_to(std::uint32_t taken) { taken_ = taken; }
  bool is_full() const { return !rooms_.has_free(); }
  bool lacks_memory() const { return rooms_.lacks_memory(); }
  std::size_t guests() const { return rooms_.in_use(); }

 private:
  std::uint32_t taken_ = 0;
  ObjectPool<Segment> rooms_;
  ObjectPool<Block> blocks_;
};

}  // namespace fairlead::link
