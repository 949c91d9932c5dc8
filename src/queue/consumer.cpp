#include "queue/consumer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/processor.hpp"

namespace fairlead::queue {
namespace {

constexpr std::uint64_t kThinLook = 64;  // elements

std::uint64_t address_of(const void* place) {
  return reinterpret_cast<std::uintptr_t>(place);
}

}  // namespace

/// Sets up everything except the header.
Result<Consumer> Consumer::begin(std::span<std::byte> segment_zero, const Geometry& geometry) {
  if (!is_element_size(geometry.element_bytes) || geometry.elements < 2 || geometry.elements > kElementsMax) {
    return std::unexpected(Error{Status::invalid, 0,
                                 fmt::format("event queue: {} elements of {} bytes: take at least "
                                             "2 elements of a multiple of 8 up to {} bytes",
                                             geometry.elements, geometry.element_bytes, kElementBytesMax)});
  }
  const auto bytes_needed = segment_bytes(geometry.element_bytes, geometry.elements);
  SegmentTable segments;
  if (segment_zero.size() < bytes_needed || !segments.attach({}, segment_zero)) {
    return std::unexpected(
        Error{Status::invalid, 0,
              fmt::format("event queue: segment 0 at {} of {} bytes: give at "
                          "least {} bytes, at most 4 GiB, aligned to {}",
                          fmt::ptr(segment_zero.data()), segment_zero.size(), bytes_needed, RunLocation::kLineBytes)});
  }
  Consumer consumer(std::move(segments), reinterpret_cast<Header*>(segment_zero.data()), geometry);
  auto& unused = consumer.unused_[0];
  unused = {segment_zero.data(), sizeof(Header), segment_zero.size() / sizeof(Run) * sizeof(Run)};
  auto* first = unused.base + unused.begin;
  unused.begin += std::uint64_t{geometry.elements} * geometry.element_bytes;
  unused.end -= sizeof(Run);
  auto* run = reinterpret_cast<Run*>(unused.base + unused.end);
  const auto location = RunLocation::of({{}, static_cast<std::uint32_t>(unused.end)});
  consumer.write_run({}, run, first, {geometry.elements, location}, address_of(run));
  consumer.run_ = run;
  consumer.run_count_ = geometry.elements;
  consumer.element_ = first + std::size_t{geometry.elements - 1} * geometry.element_bytes;
  return consumer;
}

Result<Consumer> Consumer::create(std::span<std::byte> segment_zero, const Geometry& geometry) {
  auto consumer = begin(segment_zero, geometry);
  if (!consumer) return consumer;
  Header& header = *new (segment_zero.data()) Header{};
  header.element_bytes.store(geometry.element_bytes, std::memory_order_relaxed);
  header.first_number.store(geometry.first_number, std::memory_order_relaxed);
  const auto run = static_cast<std::uint32_t>(consumer->unused_[0].end);
  header.first_run.store(RunLocation::of({{}, run}).word, std::memory_order_relaxed);
  header.produced.store(geometry.first_number, std::memory_order_relaxed);
  header.consumed.store(geometry.first_number, std::memory_order_relaxed);
  header.size.store(geometry.elements, std::memory_order_relaxed);
  header.grant.store(geometry.first_number + geometry.elements - 1, std::memory_order_relaxed);
  header.mark.store(kHeaderMark, std::memory_order_release);
  return consumer;
}

// The run is where create() puts it. It is written again, since its addresses were those of another program. Everything
// that the producer reads of it stays the same.
Result<Consumer> Consumer::resume(std::span<std::byte> segment_zero, const Geometry& geometry, std::uint64_t consumed) {
  auto consumer = begin(segment_zero, geometry);
  if (!consumer) return consumer;
  const auto last =
      static_cast<std::uint32_t>((consumed - geometry.first_number + geometry.elements - 1) % geometry.elements);
  consumer->consumed_ = consumer->seen_ = consumed;
  consumer->left_ = geometry.elements - 1 - last;
  consumer->element_ -= std::size_t{consumer->left_} * geometry.element_bytes;
  consumer->hand_back();
  return consumer;
}

Consumer::Consumer(SegmentTable segments, Header* header, const Geometry& geometry)
    : consumed_(geometry.first_number),
      seen_(geometry.first_number),
      size_(geometry.elements),
      element_bytes_(geometry.element_bytes),
      header_(header),
      segments_(std::move(segments)) {}

// Each poll of the producer's counter takes its cache line away from the producer. If polls find few elements each,
// both sides are faster with a short pause between polls. But a poll that found one element may have found a reply, so
// the pause is then no longer than a reply takes. After an empty poll nothing streams, and a pause would only add
// latency.
bool Consumer::look() noexcept {
  for (std::uint32_t i = 0; i < pace_; ++i) base::relax();
  const auto produced = header_->produced.load(std::memory_order_acquire);
  const auto count_seen = produced - consumed_;
  if (count_seen == 0) {
    pace_ = 0;
    status_ = Status::again;
    return false;
  }
  if (count_seen >= size_) return refuse();
  pace_ = std::min(count_seen == 1 ? 1 : count_seen < kThinLook ? 2 * pace_ + 2 : pace_ / 2, pace_max_);
  seen_ = produced;
  return true;
}

bool Consumer::refuse() noexcept {
  status_ = Status::invalid;
  return false;
}

// These words are our own, but the other side can write to the memory, so they are checked like its words.
Run* Consumer::run_at(std::uint64_t address, RunLocation& location) const noexcept {
  const auto place = segments_.locate(address, sizeof(Run));
  if (!place || place->offset % sizeof(Run) != 0) return nullptr;
  location = RunLocation::of(*place);
  auto* run = reinterpret_cast<Run*>(address);
  return run->mark.load(std::memory_order_relaxed) == blessing_of(location) ? run : nullptr;
}

bool Consumer::cross() noexcept {
  RunLocation location;
  auto* run = run_at(run_->consumer_next.load(std::memory_order_relaxed), location);
  if (run == nullptr) return refuse();
  const auto count = run->consumer_count.load(std::memory_order_relaxed);
  const auto first = run->consumer_first.load(std::memory_order_relaxed);
  if (count == 0 || count > kElementsMax || first % alignment_of(element_bytes_) != 0 ||
      !segments_.locate(first, count * element_bytes_)) {
    return refuse();
  }
  run_ = run;
  run_count_ = static_cast<std::uint32_t>(count);
  left_ = run_count_ - 1;
  element_ = reinterpret_cast<std::byte*>(first);
  return true;
}

bool Consumer::attach(SegmentNumber number, std::span<std::byte> memory) noexcept {
  if (!segments_.attach(number, memory)) return false;
  unused_[number.value] = {memory.data(), 0, memory.size() / sizeof(Run) * sizeof(Run)};
  return true;
}

// The new elements go behind our element, in one of three ways. They continue our run in memory, and the run grows. Or
// our element is the last of its run, and a new run follows. Or it is not, and the run is cut, with the new run in
// between. In each case everything new is complete before the one store to our run's shape that links it, and the grant
// comes last. So a consumer that dies in between leaves a ring that can be walked.
Status Consumer::add(SegmentNumber number, std::uint32_t elements) noexcept {
  if (number.value >= kSegmentsMax || unused_[number.value].base == nullptr || elements == 0) return Status::invalid;
  if (size_ + elements > kElementsMax) return Status::no_memory;
  auto& unused = unused_[number.value];
  auto* first = unused.base + unused.begin;
  const auto bytes = std::uint64_t{elements} * element_bytes_;
  const bool continues_run = left_ == 0 && first == element_ + element_bytes_;
  const std::uint64_t runs_needed = continues_run ? 0 : left_ == 0 ? 1 : 2;
  if (unused.end - unused.begin < bytes + runs_needed * sizeof(Run)) return Status::no_memory;

  RunLocation next;
  auto next_address = run_->consumer_next.load(std::memory_order_relaxed);
  if (run_at(next_address, next) == nullptr) return Status::invalid;
  unused.begin += bytes;
  unused.end -= runs_needed * sizeof(Run);

  if (continues_run) {
    run_count_ += elements;
    run_->consumer_count.store(run_count_, std::memory_order_relaxed);
    run_->shape.store(Shape{run_count_, next}.pack(), std::memory_order_release);
  } else {
    auto* runs = reinterpret_cast<Run*>(unused.base + unused.end);
    if (left_ != 0) {
      next = write_run(number, runs + 1, element_ + element_bytes_, {left_, next}, next_address);
      next_address = address_of(runs + 1);
      runs[1].rest.store(run_->rest.load(std::memory_order_relaxed), std::memory_order_relaxed);
      run_->rest.store(next.word, std::memory_order_relaxed);
    }
    const auto added = write_run(number, runs, first, {elements, next}, next_address);
    const auto count_kept = run_count_ - left_;
    run_->consumer_count.store(count_kept, std::memory_order_relaxed);
    run_->consumer_next.store(address_of(runs), std::memory_order_relaxed);
    run_->shape.store(Shape{count_kept, added}.pack(), std::memory_order_release);
    run_ = runs;
    run_count_ = elements;
  }
  element_ = first + (bytes - element_bytes_);
  left_ = 0;
  publish_growth(elements);
  return Status::ok;
}

// Word by word, not by a constructor: the other side may already read this memory, although it should not.
RunLocation Consumer::write_run(SegmentNumber number, Run* run, std::byte* first, Shape shape,
                                std::uint64_t next) noexcept {
  auto offset_of = [&](const void* place) {
    return static_cast<std::uint32_t>(address_of(place) - address_of(unused_[number.value].base));
  };
  const auto location = RunLocation::of({number, offset_of(run)});
  run->first.store(segments_.locate(address_of(first), element_bytes_)->pack(), std::memory_order_relaxed);
  run->consumer_first.store(address_of(first), std::memory_order_relaxed);
  run->consumer_count.store(shape.count, std::memory_order_relaxed);
  run->consumer_next.store(next, std::memory_order_relaxed);
  run->rest.store(0, std::memory_order_relaxed);
  run->mark.store(blessing_of(location), std::memory_order_relaxed);
  run->shape.store(shape.pack(), std::memory_order_release);
  return location;
}

void Consumer::publish_growth(std::uint32_t elements) noexcept {
  size_ += elements;
  header_->epoch.store(++epoch_, std::memory_order_release);
  header_->size.store(size_, std::memory_order_relaxed);
  header_->grant.store(consumed_ + size_ - 1, std::memory_order_release);
}

State Consumer::state() const noexcept {
  const auto count_now = count();
  if (count_now == 0) return State::empty;
  return count_now >= size_ - 1 ? State::full : State::partial;
}

}  // namespace fairlead::queue
