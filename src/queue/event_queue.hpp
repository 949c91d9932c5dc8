#pragma once
// An event queue within one process: a Producer, a Consumer and their memory, for records of one type.
//
//   EventQueue<Completion> queue;
//   queue.reserve(64);                                  // the consumer, before it causes up to 64 more events
//   queue.produce(completion);                          // one producing thread at a time
//   while (const auto* completion = queue.consume())    // one consuming thread at a time; valid until the next call
//
// The owner has to reserve enough: a full queue returns `again`, and never grows by itself.

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include <fairlead/error.hpp>

#include "base/ensure.hpp"
#include "queue/consumer.hpp"
#include "queue/producer.hpp"

namespace fairlead::queue {

struct ReleaseSegment {
  std::size_t bytes = 0;
  void operator()(std::byte* memory) const noexcept;
};

/// Zeroed memory for one segment. A large one is given back to the system at its end.
class OwnedSegment {
 public:
  OwnedSegment() = default;
  explicit OwnedSegment(std::size_t bytes);  // empty if there is no memory
  std::span<std::byte> span() const noexcept { return {memory_.get(), memory_ ? memory_.get_deleter().bytes : 0}; }

 private:
  std::unique_ptr<std::byte, ReleaseSegment> memory_;
};

/// The segments of a queue, by number. The consumer adds them; the producer maps each when it first meets it.
class OwnedSegments final : public SegmentSource {
 public:
  explicit OwnedSegments(std::size_t first_bytes) {
    segments_[0] = OwnedSegment(first_bytes);
    if (segments_[0].span().empty()) throw std::bad_alloc();
  }
  std::span<std::byte> map(SegmentNumber number) override { return segments_[number.value].span(); }
  /// Returns the new segment's number, or nothing if all numbers are taken or there is no memory.
  std::optional<SegmentNumber> add(std::size_t bytes);

 private:
  std::array<OwnedSegment, kSegmentsMax> segments_;
  std::uint32_t used_ = 1;
};

template <typename T>
  requires std::is_trivially_copyable_v<T>
class EventQueue {
 public:
  /// Makes room for `capacity` events; the counters start at first_number. Throws std::bad_alloc.
  explicit EventQueue(std::uint32_t capacity = kCapacityMin, std::uint64_t first_number = 0)
      : segments_(segment_bytes(kElementBytes, std::uint64_t{capacity} + 1)),
        consumer_(make_consumer(capacity, first_number)),
        producer_(make_producer()) {}
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  /// [producer] Returns ok, or again if the queue is full.
  Status produce(const T& record) noexcept {
    return produce_in_place([&](void* element) { new (element) T(record); }) ? Status::ok : producer_.status();
  }
  /// [producer] The same; make(element) constructs the record. Returns false if the queue is full and `make` was not
  /// called.
  template <typename Make>
  bool produce_in_place(Make&& make) noexcept {
    auto* element = producer_.pnext();
    if (element == nullptr) [[unlikely]]
      return false;
    make(static_cast<void*>(element));
    producer_.put();
    return true;
  }

  /// [consumer] Returns the next record, valid until the next consume() or reserve(); null if there is none.
  const T* consume() noexcept { return std::launder(reinterpret_cast<const T*>(consumer_.get())); }
  /// [consumer] Copies the next records, as many as there are and `to` has room for; returns their number.
  std::size_t consume(std::span<T> to) noexcept {
    std::size_t count = 0;
    while (count < to.size()) {
      const Stretch stretch = consumer_.get(static_cast<std::uint32_t>(to.size() - count));
      if (stretch.count == 0) break;
      std::memcpy(&to[count], stretch.first, stretch.count * sizeof(T));
      count += stretch.count;
    }
    if (count > 0) consumer_.hand_back();  // so that the producer has their room at once
    return count;
  }

  /// [consumer] Makes capacity() at least `capacity_needed`, in place, while the producer runs; no_memory at the limit.
  /// The ring grows at least by half, so that new elements form one long run.
  Status reserve(std::uint64_t capacity_needed) {
    if (capacity_needed <= capacity()) return Status::ok;
    if (capacity_needed >= kElementsMax) return Status::no_memory;
    const auto missing = capacity_needed - capacity();
    const auto growth = static_cast<std::uint32_t>(missing > capacity() / 2 ? missing : capacity() / 2);
    const auto number = segments_.add(segment_bytes(kElementBytes, growth));
    if (!number || !consumer_.attach(*number, segments_.map(*number))) return Status::no_memory;
    return consumer_.add(*number, growth);
  }

  /// [consumer] How many events the queue can hold.
  std::uint64_t capacity() const noexcept { return consumer_.size() - 1; }

  /// Any thread; the answer may be outdated.
  bool is_empty() const noexcept { return consumer_.is_empty(); }

  /// Both sides, for what has no wrapper here: batches, filling in place, counts.
  Producer& producer() noexcept { return producer_; }
  Consumer& consumer() noexcept { return consumer_; }

 private:
  static constexpr std::uint32_t kCapacityMin = 64;
  static constexpr std::uint32_t kElementBytes = (sizeof(T) + 7) / 8 * 8;
  static_assert(alignof(T) <= alignment_of(kElementBytes));

  Consumer make_consumer(std::uint32_t capacity, std::uint64_t first_number) {
    auto consumer = Consumer::create(segments_.map({}), {kElementBytes, capacity + 1, first_number});
    ENSURE(consumer.has_value(), "{}", consumer.error().message);
    return std::move(*consumer);
  }
  Producer make_producer() {
    auto producer = Producer::attach(segments_);
    ENSURE(producer.has_value(), "{}", producer.error().message);
    return std::move(*producer);
  }

  OwnedSegments segments_;
  alignas(kLinePairBytes) Consumer consumer_;
  alignas(kLinePairBytes) Producer producer_;
};

}  // namespace fairlead::queue
