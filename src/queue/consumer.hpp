#pragma once
// The consumer's side of an event queue. It takes elements in order, and owns the elements of its last get until the
// next get or add. Only the consumer makes and grows the ring (docs/event-queue.md).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <fairlead/error.hpp>

#include "queue/layout.hpp"
#include "queue/segment_table.hpp"

namespace fairlead::queue {

enum class State : std::uint8_t { empty, partial, full };

/// How a queue is made. The counters start at first_number; they may wrap.
struct Geometry {
  std::uint32_t element_bytes = 64;
  std::uint32_t elements = 2;
  std::uint64_t first_number = 0;
};

/// Threads: one at a time.
class Consumer {
 public:
  static constexpr std::uint32_t kPaceMax = 16;  // pause instructions before a poll

  /// Makes a queue in segment 0, before any other side can see it.
  static Result<Consumer> create(std::span<std::byte> segment_zero, const Geometry& geometry);

  /// Resumes a queue that the previous program in this process made with create() in this memory, with this geometry.
  /// Its consumer had taken all elements before number `consumed`, owned none any more, and had never grown the ring.
  static Result<Consumer> resume(std::span<std::byte> segment_zero, const Geometry& geometry, std::uint64_t consumed);

  /// Returns the next element, owned until the next get or add. Null if there is none or the memory was refused: see
  /// status().
  std::byte* get() noexcept {
    if (consumed_ == seen_) [[unlikely]] {
      if (!look()) return nullptr;
    }
    if (left_ == 0) [[unlikely]] {
      if (!cross()) return nullptr;
    } else {
      --left_;
      element_ += element_bytes_;
    }
    hand_back_and_take(1);
    return element_;
  }
  /// Takes up to `max` elements in order, all owned until the next get or add; fewer where a run ends.
  Stretch get(std::uint32_t max) noexcept;
  /// Hands all elements taken, except the last, back to the producer at once.
  void hand_back() noexcept { header_->grant.store(consumed_ - 1 + size_, std::memory_order_release); }

  /// Switches off the pause before polls, for a consumer that runs the producer on its own thread.
  void look_at_once() noexcept { pace_max_ = 0; }

  /// Why get() returned nothing: again (empty), or invalid (a counter or link is inconsistent, and was not followed).
  Status status() const noexcept { return status_; }

  /// Adds memory from which the ring can grow; `number`: the segment under which the producer's source maps it. Returns
  /// false if the number is taken or out of range, or the memory is too big or not aligned to a cache line.
  bool attach(SegmentNumber number, std::span<std::byte> memory) noexcept;
  /// Grows the ring at the consumer's position while the producer runs. The elements owned so far go back to the
  /// producer. Errors: no_memory (the segment has no room for so many), invalid (it was never attached).
  Status add(SegmentNumber number, std::uint32_t elements) noexcept;

  std::uint64_t size() const noexcept { return size_; }
  /// Elements that can be taken; at least this many.
  std::uint64_t count() const noexcept { return header_->produced.load(std::memory_order_acquire) - consumed_; }
  State state() const noexcept;
  std::uint64_t consumed() const noexcept { return consumed_; }

  /// Any thread; the answer may be outdated. The owner uses count(), because the other side can write both words.
  bool is_empty() const noexcept {
    return header_->consumed.load(std::memory_order_acquire) == header_->produced.load(std::memory_order_acquire);
  }

 private:
  // The unused part of a segment, in bytes from its start.
  struct Unused {
    std::byte* base = nullptr;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  Consumer(SegmentTable segments, Header* header, const Geometry& geometry);

  void hand_back_and_take(std::uint32_t count) noexcept {
    header_->grant.store(consumed_ + size_, std::memory_order_release);
    consumed_ += count;
    header_->consumed.store(consumed_, std::memory_order_relaxed);
  }

  static Result<Consumer> begin(std::span<std::byte> segment_zero, const Geometry& geometry);
  bool look() noexcept;
  bool refuse() noexcept;
  bool cross() noexcept;
  Run* run_at(std::uint64_t address, RunLocation& location) const noexcept;
  RunLocation write_run(SegmentNumber number, Run* run, std::byte* first, Shape shape, std::uint64_t next) noexcept;
  void publish_growth(std::uint32_t elements) noexcept;

  std::byte* element_ = nullptr;  // the element taken last
  std::uint64_t consumed_;
  std::uint64_t seen_;  // the producer's counter when last read
  std::uint64_t size_;
  std::uint32_t left_ = 0;  // elements after element_ in its run
  std::uint32_t element_bytes_;
  Header* header_;
  Run* run_ = nullptr;  // the run of element_
  std::uint32_t run_count_ = 0;
  std::uint32_t pace_ = 0;  // pauses before the next poll
  std::uint32_t pace_max_ = kPaceMax;
  Status status_ = Status::again;
  std::uint64_t epoch_ = 0;
  std::array<Unused, kSegmentsMax> unused_{};
  SegmentTable segments_;
};

inline Stretch Consumer::get(std::uint32_t max) noexcept {
  if (max == 0) return {};
  auto* first = get();
  if (first == nullptr) return {};
  const auto more_seen = seen_ - consumed_;
  auto more = more_seen < left_ ? static_cast<std::uint32_t>(more_seen) : left_;
  if (more > max - 1) more = max - 1;
  left_ -= more;
  element_ += std::size_t{more} * element_bytes_;
  consumed_ += more;
  header_->consumed.store(consumed_, std::memory_order_relaxed);
  return {first, more + 1};
}

}  // namespace fairlead::queue
