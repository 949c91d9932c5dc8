#include "engine/active_port.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace fairlead::engine {

ActivePort::~ActivePort() {
  // Each buffer belongs to an arrival or to the free list.
  for (const auto& block : blocks_) {
    for (std::uint32_t i = 0; i < kBlock; ++i) ::operator delete(block[i].buffer);
  }
  free_idle_buffers();
}

Status ActivePort::check_place(std::uint64_t offset, std::uint64_t length) const {
  if (segment.length == 0) return Status::invalid;
  return offset <= segment.length && length <= segment.length - offset ? Status::ok : Status::too_big;
}

std::expected<Permit, Status> ActivePort::permit_placed(const Arrival& arrival, Pieces& pieces) const {
  if (const Status status = check_place(arrival.offset, arrival.data_length); status != Status::ok)
    return std::unexpected(status);
  if (arrival.data != segment.at(arrival.offset)) return std::unexpected(Status::invalid);
  pieces = {{{arrival.head_bytes, arrival.head}, {arrival.data, arrival.data_length}}};
  return Permit(pieces, 0, arrival.head + arrival.data_length);
}

Arrival* ActivePort::acquire(std::uint64_t buffered, bool for_reply) {
  take_back(kReturnsInCall);
  if (!for_reply && made_ - idle_.size() >= bounds_.arrivals_max) {
    take_back(~0U);
    if (made_ - idle_.size() >= bounds_.arrivals_max) return nullptr;
  }
  Arrival* arrival = take_idle();
  if (arrival == nullptr) return nullptr;
  if (buffered != 0 && !give_buffer(*arrival, buffered, for_reply)) {
    idle_.push_back(arrival);
    return nullptr;
  }
  return arrival;
}

// Arrivals of requests and of replies each have the limit of the options.
Arrival* ActivePort::take_idle() {
  if (idle_.empty()) {
    if (made_ >= 2 * std::uint64_t{bounds_.arrivals_max}) return nullptr;
    try {
      idle_.reserve(made_ + kBlock);
      blocks_.push_back(std::make_unique<Arrival[]>(kBlock));
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    for (std::uint32_t i = kBlock; i-- > 0;) idle_.push_back(&blocks_.back()[i]);
    made_ += kBlock;
  }
  Arrival* arrival = idle_.back();
  idle_.pop_back();
  return arrival;
}

void ActivePort::take_back(std::uint32_t most) {
  for (std::uint32_t i = 0; i < most; ++i) {
    Arrival* arrival = back_.take_unlinked();
    if (arrival == nullptr) return;
    if (arrival->buffer != nullptr) {
      IdleBuffer*& idle = idle_buffers_[arrival->buffer_class];
      idle = ::new (arrival->buffer) IdleBuffer{idle};
      arrival->buffer = nullptr;
    }
    idle_.push_back(arrival);
  }
}

bool ActivePort::give_buffer(Arrival& arrival, std::uint64_t bytes, bool for_reply) {
  const auto log = std::max(static_cast<unsigned>(std::bit_width(bytes - 1)), kSmallestClass);
  if (log - kSmallestClass >= kClasses) return false;
  IdleBuffer*& idle = idle_buffers_[log - kSmallestClass];
  const std::uint64_t size = std::uint64_t{1} << log;
  const std::uint64_t bound = for_reply ? 2 * bounds_.memory_max : bounds_.memory_max;
  if (idle == nullptr && size + buffer_bytes_ > bound) {
    take_back(~0U);
    if (idle == nullptr) free_idle_buffers();
    if (idle == nullptr && size + buffer_bytes_ > bound) return false;
  }
  if (idle == nullptr) {
    void* made = ::operator new(size, std::nothrow);
    if (made == nullptr) return false;
    buffer_bytes_ += size;
    idle = ::new (made) IdleBuffer{nullptr};
  }
  arrival.buffer = reinterpret_cast<std::byte*>(std::exchange(idle, idle->next));
  arrival.buffer_class = static_cast<std::uint8_t>(log - kSmallestClass);
  return true;
}

void ActivePort::free_idle_buffers() {
  for (unsigned i = 0; i < kClasses; ++i) {
    while (IdleBuffer* const idle = idle_buffers_[i]) {
      idle_buffers_[i] = idle->next;
      ::operator delete(idle);
      buffer_bytes_ -= std::uint64_t{1} << (i + kSmallestClass);
    }
  }
}

void ActivePort::queue(Arrival& arrival, bool is_ready) {
  arrivals_.put(arrival, is_ready);
  if (is_ready) readied_.store(readied_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void ActivePort::complete(Arrival& arrival) {
  queue::TaskQueue<Arrival>::complete(arrival);
  readied_.store(readied_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

Arrival* ActivePort::next() {
  if (!has_ready()) return nullptr;
  Arrival* arrival = arrivals_.take();
  if (arrival != nullptr) taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  return arrival;
}

void ActivePort::release(Arrival& arrival) {
  arrivals_.finish(arrival);
  while (Arrival* free = arrivals_.reclaim()) back_.put(*free, true);
}

}  // namespace fairlead::engine
