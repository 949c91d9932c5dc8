#pragma once
// The receive side of active messages at one port: task queue, pool of arrivals and buffers, access rule, and segment.
//
// Arrivals circulate. The engine takes one from the pool, fills it and queues it. The AM layer takes it, runs its
// handler and returns it with its buffer. Both directions are lock-free queues with one producer and one consumer.
// Arrivals and buffers are allocated when the pool is empty, and are then kept.

#include <array>
#include <atomic>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <vector>

#include "engine/active.hpp"
#include "engine/open_requests.hpp"
#include "engine/permit.hpp"
#include "queue/task_queue.hpp"

namespace fairlead::engine {

class ActivePort {
 public:
  struct Bounds {
    std::uint32_t arrivals_max = 0;
    std::uint64_t memory_max = 0;  // bytes of buffers
    std::uint32_t packed_max = 0;  // bytes of a message stored in the arrival itself
  };

  ActivePort(const Bounds& bounds, std::uint64_t secret) : bounds_(bounds), secret_(secret) {}
  ~ActivePort();
  ActivePort(const ActivePort&) = delete;
  ActivePort& operator=(const ActivePort&) = delete;

  // The engine's side, under its lock.
  AccessRule rule;
  Segment segment;
  OpenRequests requests;
  Status gone = Status::ok;  // not ok: why requests are returned from now on
  /// Returns the secret that answers to our messages must carry.
  std::uint64_t secret() const { return secret_; }
  bool admits(std::uint64_t access) const {
    return rule.kind == AccessRule::Kind::all || (rule.kind == AccessRule::Kind::equal && rule.access == access);
  }
  /// Returns ok, `invalid` (no segment) or `too_big` (not completely inside).
  Status check_place(std::uint64_t offset, std::uint64_t length) const;
  /// Returns permission to write an arrival's head and data: to its own memory or, if placed, to the segment. The
  /// segment may have changed since the message began; then it returns the reason.
  using Pieces = std::array<iovec, 2>;  // of the permit, which refers to them
  std::expected<Permit, Status> permit(const Arrival& arrival, Pieces& pieces) const {
    if (arrival.is_placed) [[unlikely]]
      return permit_placed(arrival, pieces);
    const std::uint64_t size = arrival.head + arrival.data_length;
    pieces[0] = {arrival.head_bytes, size};
    return Permit(std::span(pieces).first(1), 0, size);
  }
  const Bounds& bounds() const { return bounds_; }
  bool is_packed(std::uint64_t length) const { return length <= bounds_.packed_max; }
  /// Returns an arrival with room for `buffered` bytes besides the packed ones; null at a limit. `for_reply` permits
  /// more, for a reply.
  Arrival* acquire(std::uint64_t buffered, bool for_reply);
  void queue(Arrival& arrival, bool is_ready);
  void complete(Arrival& arrival);

  // The AM layer's side.
  Arrival* next();
  void release(Arrival& arrival);
  // Thread-safe:
  bool has_ready() const { return readied_.load(std::memory_order_acquire) != taken_.load(std::memory_order_acquire); }

 private:
  static constexpr std::uint32_t kBlock = 64;     // arrivals allocated at once
  static constexpr unsigned kSmallestClass = 11;  // log2 of the smallest buffer's size
  static constexpr unsigned kClasses = 40;
  static constexpr std::uint32_t kReturnsInCall = 8;  // arrivals taken back per acquire()

  /// Stored in the free buffer itself, so that returning a buffer needs no memory.
  struct IdleBuffer {
    IdleBuffer* next;
  };

  std::expected<Permit, Status> permit_placed(const Arrival& arrival, Pieces& pieces) const;
  Arrival* take_idle();
  void take_back(std::uint32_t most);
  bool give_buffer(Arrival& arrival, std::uint64_t bytes, bool for_reply);
  void free_idle_buffers();

  Bounds bounds_;
  std::uint64_t secret_;
  std::vector<std::unique_ptr<Arrival[]>> blocks_;
  std::uint32_t made_ = 0;
  std::vector<Arrival*> idle_;
  std::array<IdleBuffer*, kClasses> idle_buffers_{};
  std::uint64_t buffer_bytes_ = 0;  // allocated, including free ones

  queue::TaskQueue<Arrival> arrivals_;  // from the engine to the AM layer
  queue::TaskQueue<Arrival> back_;      // from the AM layer to the engine
  // Arrivals made ready (counted by the engine) and taken (counted by the AM layer).
  alignas(queue::kLinePairBytes) std::atomic<std::uint64_t> readied_{0};
  alignas(queue::kLinePairBytes) std::atomic<std::uint64_t> taken_{0};
};

}  // namespace fairlead::engine
