#pragma once
// The layout of an event queue in shared memory, and who writes each word (the model: docs/event-queue.md).
//
//   segment 0:   header | elements --->            <--- run descriptors
//   segment n:            elements --->            <--- run descriptors
//
// Every word is atomic, even one that only one side uses: the other side may be hostile. So a word is read once, then
// checked, then used. Only `produced`, `grant`, `epoch` and `shape` carry an order, and each needs it
// (tests/models/event_queue.pml, tests/weak_memory); so does the header's `mark` when a producer attaches. Everything
// else is relaxed.

#include <cstddef>
#include <cstdint>

#include "queue/location.hpp"
#include "queue/shared_word.hpp"

namespace fairlead::queue {

inline constexpr std::size_t kLinePairBytes = 128;  // the adjacent-line prefetcher fetches cache lines in pairs
inline constexpr std::uint64_t kHeaderMark = 0x3171'7565'7665'6c66;
inline constexpr std::uint32_t kElementBytesMax = 1U << 20;
inline constexpr std::uint64_t kElementsMax = std::uint64_t{1} << 30;

static_assert(SharedWord::is_always_lock_free, "the queue is shared by processes: its words must be lock-free");
static_assert(sizeof(SharedWord) == sizeof(std::uint64_t));

struct Header {
  // Written once, before the queue is shared.
  SharedWord mark;
  SharedWord element_bytes;
  SharedWord first_number;  // both counters start at this value
  SharedWord first_run;     // RunLocation of the run at whose first element the producer starts

  // Written by the producer: release in put(), acquire in the consumer's poll.
  alignas(kLinePairBytes) SharedWord produced;

  // Written by the consumer. The producer may put element n if and only if n comes before `grant`: release in get() and
  // add(), acquire in the producer's poll. `epoch` counts changes of the ring, and is stored before the grant that
  // depends on it.
  alignas(kLinePairBytes) SharedWord grant;
  SharedWord epoch;
  SharedWord consumed;
  SharedWord size;
};
static_assert(sizeof(Header) == 3 * kLinePairBytes);

/// The number of elements in a run, and the run that follows, as the producer sees them. One word, so that one store
/// publishes a growth, and a reader never pairs an old count with a new link.
struct Shape {
  std::uint32_t count = 0;
  RunLocation next;

  std::uint64_t pack() const noexcept { return std::uint64_t{count} << 32 | next.word; }
  static Shape unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word >> 32), {static_cast<std::uint32_t>(word)}};
  }
};

/// Contiguous elements. The consumer writes all of it. Once the run is linked, only `shape`, `rest` and the consumer's
/// words change.
struct alignas(RunLocation::kLineBytes) Run {
  // Words for the producer.
  SharedWord mark;   // blessing_of(own location): the run is valid
  SharedWord first;  // Location of its first element
  SharedWord shape;
  SharedWord rest;  // RunLocation of the piece last cut off its end, or none; read after `shape`
  // Words for the consumer: addresses in its own address space.
  SharedWord consumer_first;
  SharedWord consumer_next;
  SharedWord consumer_count;
};
static_assert(sizeof(Run) == RunLocation::kLineBytes);

/// The mark of a valid run: it encodes the run's own location in the producer's space.
constexpr std::uint64_t blessing_of(RunLocation run) noexcept {
  return (std::uint64_t{run.word} << 32 | run.word) ^ 0x6465'7373'656c'6221;
}

/// Contiguous elements, handed out for filling or reading.
struct Stretch {
  std::byte* first = nullptr;
  std::uint32_t count = 0;
};

/// The largest alignment that all contiguous elements of a size can have.
constexpr std::uint64_t alignment_of(std::uint64_t element_bytes) noexcept {
  const std::uint64_t lowest_bit = element_bytes & (~element_bytes + 1);
  return lowest_bit < RunLocation::kLineBytes ? lowest_bit : RunLocation::kLineBytes;
}

constexpr bool is_element_size(std::uint64_t bytes) noexcept {
  return bytes >= 8 && bytes % 8 == 0 && bytes <= kElementBytesMax;
}

/// Bytes of a segment for `elements` that are added in up to `additions` pieces, each inside an older run.
constexpr std::uint64_t segment_bytes(std::uint64_t element_bytes, std::uint64_t elements,
                                      std::uint64_t additions = 1) {
  const std::uint64_t bytes = sizeof(Header) + element_bytes * elements + sizeof(Run) * (2 * additions + 1);
  return (bytes + kLinePairBytes - 1) / kLinePairBytes * kLinePairBytes;
}

}  // namespace fairlead::queue
