// Minimal shared memory between two processes: slots in a ring, each with a sequence word in its first cache line.

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "observe/floor.hpp"
#include "observe/floor_meter.hpp"
#include "observe/floor_peer.hpp"

namespace fairlead::observe {
namespace {

constexpr std::size_t kRingBytes = 256 * 1024;  // fits into the caches
constexpr std::size_t kChunkMax = 16 * 1024;
constexpr std::size_t kLine = 64;
constexpr std::uint64_t kRingLooksPerClock = 1024;

/// One direction. Both sides have it at the same address, since it was mapped before the fork.
class Ring {
 public:
  Ring(std::byte* memory, std::size_t chunk)
      : read_(new(memory) std::atomic<std::uint64_t>(0)),
        slots_(memory + 2 * kLine),
        slot_bytes_((chunk + sizeof(std::uint64_t) + kLine - 1) / kLine * kLine),
        count_(kRingBytes / slot_bytes_) {}

  static constexpr std::size_t kBytes = kRingBytes + 2 * kLine;

  bool put(const std::byte* data, std::size_t bytes) {
    if (number_ - read_seen_ == count_) {
      read_seen_ = read_->load(std::memory_order_acquire);
      if (number_ - read_seen_ == count_) return false;
    }
    std::byte* slot = slots_ + number_ % count_ * slot_bytes_;
    std::memcpy(slot + sizeof number_, data, bytes);
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(slot)).store(++number_, std::memory_order_release);
    return true;
  }
  bool get(std::byte* data, std::size_t bytes) {
    std::byte* slot = slots_ + number_ % count_ * slot_bytes_;
    if (std::atomic_ref(*reinterpret_cast<std::uint64_t*>(slot)).load(std::memory_order_acquire) != number_ + 1)
      return false;
    std::memcpy(data, slot + sizeof number_, bytes);
    ++number_;
    if (number_ % std::max<std::size_t>(1, count_ / 8) == 0) read_->store(number_, std::memory_order_release);
    return true;
  }

 private:
  std::atomic<std::uint64_t>* read_;  // written by the reader
  std::byte* slots_;
  std::size_t slot_bytes_, count_;
  std::uint64_t number_ = 0;  // next sequence of this side
  std::uint64_t read_seen_ = 0;
};

class Shared {
 public:
  Shared()
      : memory_(::mmap(nullptr, 2 * Ring::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1,
                       0)) {}
  ~Shared() {
    if (is_there()) ::munmap(memory_, 2 * Ring::kBytes);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  bool is_there() const { return memory_ != MAP_FAILED; }
  Ring ring(std::size_t number, std::size_t chunk) const {
    return {static_cast<std::byte*>(memory_) + number * Ring::kBytes, chunk};
  }

 private:
  void* memory_;
};

/// Moves all chunks of one message in or out; returns false if the run ended before.
template <typename Step>
bool each_chunk(std::vector<std::byte>& message, const std::atomic<bool>& is_over, Step step) {
  for (std::size_t at = 0; at < message.size();) {
    const std::size_t bytes = std::min(kChunkMax, message.size() - at);
    for (std::uint64_t look = 1; !step(message.data() + at, bytes); ++look) {
      if (look % kRingLooksPerClock == 0 && is_over.load(std::memory_order_acquire)) return false;
    }
    at += bytes;
  }
  return true;
}

std::unexpected<Error> failed() {
  return std::unexpected(
      Error{Status::system, errno, fmt::format("cannot share {} bytes for a floor", 2 * Ring::kBytes)});
}

}  // namespace

Result<ExchangeFloor> floor_shm_exchange(const FloorOptions& options) {
  const Shared shared;
  if (!shared.is_there()) return failed();
  const std::size_t chunk = std::min<std::size_t>(options.bytes, kChunkMax);
  std::vector<std::byte> message(options.bytes, std::byte{1});
  Ring there = shared.ring(0, chunk), back = shared.ring(1, chunk);
  auto peer = FloorPeer::start(options.cpu_near, options.cpu_far, [&](FloorPage& page) {
    const auto take = [&](std::byte* data, std::size_t bytes) { return there.get(data, bytes); };
    const auto give = [&](std::byte* data, std::size_t bytes) { return back.put(data, bytes); };
    while (each_chunk(message, page.is_over, take) && each_chunk(message, page.is_over, give)) {
    }
  });
  if (!peer) return std::unexpected(peer.error());

  const std::atomic<bool> never{false};
  ExchangeMeter meter(options.duration);
  while (!meter.is_over()) {
    each_chunk(message, never, [&](std::byte* data, std::size_t bytes) { return there.put(data, bytes); });
    each_chunk(message, never, [&](std::byte* data, std::size_t bytes) { return back.get(data, bytes); });
    meter.lap(true);
  }
  return meter.take();
}

Result<StreamFloor> floor_shm_stream(const FloorOptions& options) {
  const Shared shared;
  if (!shared.is_there()) return failed();
  const std::size_t chunk = std::min<std::size_t>(options.bytes, kChunkMax);
  std::vector<std::byte> message(options.bytes, std::byte{1});
  Ring there = shared.ring(0, chunk);
  auto peer = FloorPeer::start(options.cpu_near, options.cpu_far, [&](FloorPage& page) {
    std::uint64_t received = 0;
    const auto take = [&](std::byte* data, std::size_t bytes) { return there.get(data, bytes); };
    while (each_chunk(message, page.is_over, take)) {
      received += message.size();
      page.bytes_received.store(received, std::memory_order_relaxed);
    }
  });
  if (!peer) return std::unexpected(peer.error());

  const std::atomic<bool> never{false};
  const std::atomic<std::uint64_t>& arrived = peer->page().bytes_received;
  const StreamMeter meter(options.duration);
  auto now = meter.start();
  for (std::uint64_t messages = 1; !meter.is_over(now, arrived.load(std::memory_order_relaxed)); ++messages) {
    each_chunk(message, never, [&](std::byte* data, std::size_t bytes) { return there.put(data, bytes); });
    if (messages % kRingLooksPerClock == 0 || message.size() > 1024) now = base::MonotonicClock::now();
  }
  return meter.end(*peer, now);
}

}  // namespace fairlead::observe
