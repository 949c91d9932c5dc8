#pragma once
// The memory through which a port receives active messages. The application allocates it in its shared memory and names
// it when it activates the port:
//
//   page | conversations of its requests | arrivals (an event queue) | slots for longer messages
//
// The host engine writes arrivals, slots and conversations. It reads only the arrivals' queue and the slots that were
// given back, and trusts neither.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "host/layout.hpp"
#include "queue/layout.hpp"
#include "queue/waiter.hpp"

namespace fairlead::host {

inline constexpr std::uint32_t kActivePortsMax = 64;        // per application and engine
inline constexpr std::uint32_t kArrivalsMax = 4096;         // in the queue of a port; also its unanswered requests
inline constexpr std::uint32_t kRequestPlacesMax = 262144;  // lower halves of requests' names, of all ports together
inline constexpr std::uint64_t kSegmentMax = 16ULL << 30;   // bytes

/// A message that arrived, or the notice of a refusal. Head and data follow it in the element of the queue if they fit;
/// if not, they are in a slot.
struct ArrivalHead {
  static constexpr std::uint8_t kIsPlaced = 1;
  static constexpr std::uint8_t kNoSlot = 0xff;

  std::uint64_t access = 0, name = 0;
  std::uint64_t answer = 0;  // what the answer must repeat as its reply_access
  std::uint64_t offset = 0;  // of a placed message, in the segment
  std::uint64_t data_length = 0;
  std::uint64_t segment = 0;  // number of the segment in which it was placed
  PlainAddress source{};
  std::uint32_t source_port = 0;
  std::uint16_t word = 0;
  std::uint16_t head = 0;
  std::uint8_t kind = 0, status = 0, flags = 0;
  std::uint8_t slot = kNoSlot;
  std::uint32_t unused = 0;
};
static_assert(std::is_trivially_copyable_v<ArrivalHead> && sizeof(ArrivalHead) == 88);
inline constexpr std::uint32_t kArrivalBytes = 256;  // an element of the queue
inline constexpr std::size_t kInlineMost = kArrivalBytes - sizeof(ArrivalHead);

/// The association that carries an open request, for when a peer is lost. The request's place is its index.
struct ConversationCell {
  std::atomic<std::uint64_t> way{0}, losses{0};
  std::atomic<std::uint64_t> name{0};  // of the request; released last
};

struct ActivePage {
  static constexpr std::uint32_t kSlots = 128;
  queue::SleepFlag stalled;  // the host engine's, while an arrival waits for room here
  alignas(queue::kLinePairBytes) std::array<std::atomic<std::uint64_t>, kSlots / 64> given_back{};  // a bit per slot
};

class ActiveLayout {
 public:
  static constexpr std::uint64_t kSlotBytes = 64ULL << 10;

  static constexpr std::uint64_t conversations() { return whole_pages(sizeof(ActivePage)); }
  static constexpr std::uint64_t arrivals() {
    return conversations() + whole_pages(sizeof(ConversationCell) * kRequestPlacesMax);
  }
  static constexpr std::uint64_t arrivals_bytes() {
    return whole_pages(queue::segment_bytes(kArrivalBytes, kArrivalsMax + 1));
  }
  static constexpr std::uint64_t slots() { return arrivals() + arrivals_bytes(); }
  static constexpr std::uint64_t bytes() { return slots() + ActivePage::kSlots * kSlotBytes; }

  static constexpr std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }
};

/// The parts of the memory, which begins at a page.
class ActiveMemory {
 public:
  explicit ActiveMemory(std::byte* begin) : begin_(begin) {}

  std::byte* begin() const noexcept { return begin_; }
  ActivePage& page() const noexcept { return *reinterpret_cast<ActivePage*>(begin_); }
  ConversationCell& conversation(std::uint32_t place) const noexcept {
    return reinterpret_cast<ConversationCell*>(begin_ + ActiveLayout::conversations())[place];
  }
  std::span<std::byte> arrivals() const noexcept {
    return {begin_ + ActiveLayout::arrivals(), ActiveLayout::arrivals_bytes()};
  }
  std::byte* slot(std::uint32_t index) const noexcept {
    return begin_ + ActiveLayout::slots() + index * ActiveLayout::kSlotBytes;
  }

 private:
  std::byte* begin_;
};

}  // namespace fairlead::host
