#pragma once
// The producer's side of an event queue. It fills elements in place and publishes them. It writes nothing else but its
// own counter, and trusts nothing that it reads (docs/event-queue.md).
//
// Its position is always the element of number produced(). It moves there when it publishes the previous element, along
// the link that it read together with the run's count. A later look-up could meet a ring that has grown in between.

#include <bit>
#include <cstddef>
#include <cstdint>

#include <fairlead/error.hpp>

#include "base/processor.hpp"
#include "queue/layout.hpp"
#include "queue/segment_table.hpp"

namespace fairlead::queue {

/// The producer prefetches the cache lines that it will write one block ahead, and a whole block at once. One line per
/// element would compete with the counter's own line, and make each round trip longer.
inline constexpr std::size_t kPrefetchBytes = std::size_t{8} * RunLocation::kLineBytes;

/// Threads: one at a time.
class Producer {
 public:
  /// Attaches to the queue whose header begins segment 0 of the source. It starts at the queue's first element, so a
  /// queue can have one producer, once.
  static Result<Producer> attach(SegmentSource& source);

  /// The producer's position in a queue of one segment, for the next program in this process.
  struct Position {
    std::uint64_t produced = 0, epoch = 0;
    std::uint64_t shape = 0;  // of its run, as read
    std::uint32_t run = 0;    // RunLocation
    std::uint32_t index = 0;  // of the element, in that run
    bool is_refused = false;  // it had met inconsistent memory
  };
  Position position() const noexcept;
  /// Resumes at a position. Returns invalid if there is no such place. Everything is checked as in attach().
  static Result<Producer> resume(SegmentSource& source, const Position& position);

  /// Returns the element to fill next; null if the queue is full or was refused: see status().
  std::byte* pnext() noexcept {
    if (produced_ == limit_) [[unlikely]] {
      if (!look()) return nullptr;
    }
    return element_;
  }
  /// Publishes the element of the last pnext(), which must have returned one.
  void put() noexcept { put(1); }

  /// Returns up to `max` elements to fill; fewer where a run ends or the queue is nearly full, none in the cases of
  /// pnext().
  Stretch pnext(std::uint32_t max) noexcept;
  /// Publishes the first `count` elements of pnext(max).
  void put(std::uint32_t count) noexcept;

  /// Why pnext() returned nothing: again (full), or invalid (the consumer's memory is inconsistent, and was not
  /// followed).
  Status status() const noexcept { return status_; }

  /// Elements that can be put now; at least this many.
  std::uint64_t room() const noexcept { return header_->grant.load(std::memory_order_relaxed) - produced_; }
  bool is_full() const noexcept { return room() == 0; }
  std::uint64_t produced() const noexcept { return produced_; }
  std::uint32_t element_bytes() const noexcept { return element_bytes_; }

  /// Maps a segment before its first use, off the fast path.
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
    // As an integer: a prefetch may use any address, but a pointer beyond the elements must not even be formed.
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

  std::byte* element_ = nullptr;  // of number produced_; null after a link was refused
  std::uint64_t produced_ = 0;
  std::uint64_t limit_ = 0;  // the grant when last read
  std::uint32_t left_ = 0;   // elements after element_ in its run
  std::uint32_t element_bytes_;
  Header* header_;
  Status status_ = Status::again;
  Place place_;
  std::uint64_t epoch_ = 0;  // the ring's epoch when last read
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
