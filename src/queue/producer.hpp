#pragma once
// The producing side of an event queue. It fills elements where they lie and publishes them; it never writes anything
// else but its own counter, and trusts nothing that it reads (docs/event-queue.md).
//
// Where it stands is always the element of number produced(). It steps there when it publishes the one in front, along
// the link that it read together with the run's count: looked up later, the ring may have grown right in between.

#include <bit>
#include <cstddef>
#include <cstdint>

#include <fairlead/error.hpp>

#include "base/processor.hpp"
#include "queue/layout.hpp"
#include "queue/segment_table.hpp"

namespace fairlead::queue {

/// The producer asks for the lines that it will write a block ahead, and a block at once: a single line asked for with
/// each element would be in the way of the counter's own line, and make each round trip longer.
inline constexpr std::size_t kPrefetchBytes = std::size_t{8} * RunLocation::kLineBytes;

/// One thread at a time.
class Producer {
 public:
  /// Takes part in the queue whose header starts segment 0 of the source. Starts where the queue was made: at most one
  /// producer, once.
  static Result<Producer> attach(SegmentSource& source);

  /// Where a producer stands in a queue of one segment: what the next program in this process needs to go on there.
  struct Position {
    std::uint64_t produced = 0, epoch = 0;
    std::uint64_t shape = 0;  // of its run, as it has read it
    std::uint32_t run = 0;    // RunLocation
    std::uint32_t index = 0;  // of the element, in that run
    bool is_refused = false;  // it had met what makes no sense
  };
  Position position() const noexcept;
  /// invalid: there is no such place. What it was told is believed no more than what attach() reads.
  static Result<Producer> resume(SegmentSource& source, const Position& position);

  /// The element to fill next; null if the queue is full or was refused, see status().
  std::byte* pnext() noexcept {
    if (produced_ == limit_) [[unlikely]] {
      if (!look()) return nullptr;
    }
    return element_;
  }
  /// Publishes the element that pnext() gave; only after it did.
  void put() noexcept { put(1); }

  /// Up to `max` elements to fill; fewer where a run ends or the queue is nearly full, none as pnext().
  Stretch pnext(std::uint32_t max) noexcept;
  /// Publishes the first `count` of the elements that pnext(max) gave.
  void put(std::uint32_t count) noexcept;

  /// Why pnext() gave nothing: again (full), or invalid (the consumer's memory makes no sense, nothing was followed).
  Status status() const noexcept { return status_; }

  /// How many elements could be put now, at least.
  std::uint64_t room() const noexcept { return header_->grant.load(std::memory_order_relaxed) - produced_; }
  bool is_full() const noexcept { return room() == 0; }
  std::uint64_t produced() const noexcept { return produced_; }
  std::uint32_t element_bytes() const noexcept { return element_bytes_; }

  /// Maps a segment before it is met, off the hot path.
  bool prepare(SegmentNumber number) noexcept { return segments_.prepare(number); }

 private:
  struct Place {
    Run* run = nullptr;
    Location first;
    std::byte* elements = nullptr;
    Shape shape;
  };

  Producer(SegmentTable segments, Header* header, std::uint32_t element_bytes);

  void prefetch_block() const noexcept {
    // By number: a hint may name any address, a pointer beyond the elements (or from null) may not even be formed.
    const auto block = reinterpret_cast<std::uintptr_t>(element_) + kPrefetchBytes;
    for (std::size_t at = 0; at < kPrefetchBytes; at += RunLocation::kLineBytes) {
      base::prefetch_for_write(std::bit_cast<const void*>(block + at));
    }
  }

  bool look() noexcept;
  bool refuse() noexcept;
  bool read(RunLocation location, Place& place) noexcept;
  void stand_on(const Place& place, std::uint32_t index) noexcept;
  void cross() noexcept;
  bool find_place_again() noexcept;

  std::byte* element_ = nullptr;  // of number produced_; null once a link was refused
  std::uint64_t produced_ = 0;
  std::uint64_t limit_ = 0;  // the grant as last seen
  std::uint32_t left_ = 0;   // elements behind element_ in its run
  std::uint32_t element_bytes_;
  Header* header_;
  Status status_ = Status::again;
  Place place_;
  std::uint64_t epoch_ = 0;  // of the ring as last seen
  SegmentTable segments_;
};

inline void Producer::put(std::uint32_t count) noexcept {
  if (count > left_) [[unlikely]] {
    cross();
  } else {
    left_ -= count;
    element_ += std::size_t{count} * element_bytes_;
  }
  if (reinterpret_cast<std::uintptr_t>(element_) % kPrefetchBytes < element_bytes_) prefetch_block();
  produced_ += count;
  header_->produced.store(produced_, std::memory_order_release);
}

inline Stretch Producer::pnext(std::uint32_t max) noexcept {
  auto* first = pnext();
  if (first == nullptr) return {};
  const auto room_seen = limit_ - produced_;
  const std::uint64_t count = room_seen <= left_ ? room_seen : std::uint64_t{left_} + 1;
  return {first, count < max ? static_cast<std::uint32_t>(count) : max};
}

}  // namespace fairlead::queue
