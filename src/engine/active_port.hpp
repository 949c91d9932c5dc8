#pragma once
// The receiving side of active messages at one port: the task queue, its pool of arrivals and their buffers, who may
// send and where placed data may go.
//
// The pool goes round: the engine takes an arrival, fills and queues it; the face takes it, runs it and puts it on the
// way back, with its buffer; the engine finds it there. Both ways are lock-free queues with one producer and one
// consumer. Arrivals and buffers are allocated when the pool is empty, and are kept.

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
    std::uint32_t arrivals_max;
    std::uint64_t memory_max;  // bytes of buffers
    std::uint32_t packed_max;  // bytes of a message that are packed into the arrival itself
  };

  ActivePort(const Bounds& bounds, std::uint64_t secret) : bounds_(bounds), secret_(secret) {}
  ~ActivePort();
  ActivePort(const ActivePort&) = delete;
  ActivePort& operator=(const ActivePort&) = delete;

  // The engine's, under its lock.
  AccessRule rule;
  Segment segment;
  OpenRequests requests;
  /// What answers to our messages must carry.
  std::uint64_t secret() const { return secret_; }
  bool admits(std::uint64_t access) const {
    return rule.kind == AccessRule::Kind::all || (rule.kind == AccessRule::Kind::equal && rule.access == access);
  }
  /// ok, invalid (there is no segment), too_big (not all of it lies inside).
  Status check_place(std::uint64_t offset, std::uint64_t length) const;
  /// Head and data of an arrival, to be written: in its own memory, or as far as they are placed, in the segment. That
  /// may be another one than when the message began: then why not.
  using Pieces = std::array<iovec, 2>;  // of the permit, which refers to them
  std::expected<Permit, Status> permit(const Arrival& arrival, Pieces& pieces) const {
    if (arrival.is_placed) [[unlikely]]
      return permit_placed(arrival, pieces);
    const std::uint64_t size = arrival.head + arrival.data_length;
    pieces[0] = {arrival.head_bytes, size};
    return Permit(std::span(pieces).first(1), 0, size);
  }
  bool is_packed(std::uint64_t length) const { return length <= bounds_.packed_max; }
  /// A fresh arrival with room for `buffered` bytes beside the packed ones; null at a bound. `for_reply`: a reply,
  /// which may take more.
  Arrival* acquire(std::uint64_t buffered, bool for_reply);
  void queue(Arrival& arrival, bool is_ready);
  void complete(Arrival& arrival);

  // The face's.
  Arrival* next();
  void release(Arrival& arrival);
  // Any thread's.
  bool has_ready() const { return readied_.load(std::memory_order_acquire) != taken_.load(std::memory_order_acquire); }

 private:
  static constexpr std::uint32_t kBlock = 64;     // arrivals allocated at a time
  static constexpr unsigned kSmallestClass = 11;  // log2 of the bytes of the smallest buffer
  static constexpr unsigned kClasses = 40;
  static constexpr std::uint32_t kReturnsInCall = 8;  // arrivals taken back when one is wanted

  /// In the buffer itself: to give one back takes no memory.
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
  std::uint64_t buffer_bytes_ = 0;  // allocated, idle ones too

  queue::TaskQueue<Arrival> arrivals_;  // engine to face
  queue::TaskQueue<Arrival> back_;      // face to engine
  // How many became ready, by the engine; how many were taken, by the face.
  alignas(queue::kLinePairBytes) std::atomic<std::uint64_t> readied_{0};
  alignas(queue::kLinePairBytes) std::atomic<std::uint64_t> taken_{0};
};

}  // namespace fairlead::engine
