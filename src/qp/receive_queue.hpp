#pragma once
// A receive queue, of one queue pair or shared by any number of them. It is a ring whose size is a power of two.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <fairlead/error.hpp>
#include <fairlead/verbs/work_request.hpp>

#include "base/slab.hpp"
#include "qp/pair_core.hpp"
#include "wire/sequence.hpp"

namespace fairlead::qp {

using ReceiveNumber = wire::SerialNumber<struct OfReceiveQueue>;

/// A receive that was taken out of its queue.
struct TakenReceive {
  std::uint64_t id = 0;
  std::span<const verbs::Sge> sges;  // valid until the next receive is posted
};

class ReceiveQueue {
 public:
  ReceiveQueue() = default;
  explicit ReceiveQueue(const ReceiveQueuePlan& plan);

  std::uint32_t count() const { return count_between(head_, tail_); }
  bool is_empty() const { return head_ == tail_; }
  bool is_full() const { return count() >= plan_.depth; }
  std::uint32_t domain() const { return plan_.domain; }
  std::uint32_t xrc_domain() const { return plan_.xrc_domain; }
  CompletionStream* stream() const { return plan_.stream; }
  std::uint32_t sges_max() const { return plan_.sges; }
  ReceiveNumber tail() const { return tail_; }
  ReceiveQueueFacts facts() const { return {plan_.depth, is_limit_armed_ ? plan_.limit : 0, count(), xrc_number}; }

  void post(const verbs::ReceiveRequest& request);
  /// Returns the oldest receive and leaves it in the queue, which must not be empty. take() removes it, and sends the
  /// limit notice if fewer than the limit are left.
  TakenReceive front() const {
    const Entry& entry = entries_[head_.value & mask_];
    return {entry.id, {sges_.data() + std::size_t{head_.value & mask_} * plan_.sges, entry.sge_count}};
  }
  TakenReceive take() {
    const TakenReceive taken = front();
    take_id();
    return taken;
  }
  std::uint64_t take_id() {
    const std::uint64_t id = entries_[head_.value & mask_].id;
    ++head_;
    if (is_limit_armed_) [[unlikely]]
      tell_limit();
    return id;
  }
  /// Counts a receive that is flushed at once and not stored.
  void pass() { ++head_, ++tail_; }
  void forget_all() { head_ = tail_; }
  /// Changes depth and limit; posted receives stay. Returns `invalid` if more than `depth` are posted, or `depth` is 0.
  Status change(std::uint32_t depth, std::uint32_t limit);

  std::uint32_t users = 0;
  std::uint32_t xrc_number = 0;  // 0: none

  /// Ends the process if an invariant is violated.
  void check(std::uint32_t slot) const;

 private:
  friend struct PairsForTests;
  friend class PairsHandover;

  struct Entry {
    std::uint64_t id = 0;
    std::uint32_t sge_count = 0;
  };

  void make_room(std::uint32_t depth);
  void tell_limit();

  ReceiveQueuePlan plan_;
  std::uint32_t mask_ = 0;
  ReceiveNumber head_, tail_;
  bool is_limit_armed_ = false;
  std::vector<Entry> entries_;
  std::vector<verbs::Sge> sges_;
};

/// Returns the bytes that fit into the SGEs.
inline std::uint64_t room_of(std::span<const verbs::Sge> sges) {
  std::uint64_t room = 0;
  for (const verbs::Sge& sge : sges) room += sge.length;
  return room;
}

/// The receive queues of an engine.
class ReceiveQueues {
 public:
  Status open(const ReceiveQueuePlan& plan, ReceiveQueueHandle& handle);
  /// `again`, and nothing changed, while queue pairs use it.
  Status close(ReceiveQueueHandle handle);
  ReceiveQueue* find(ReceiveQueueHandle handle) { return queues_.find(handle.slot, handle.generation); }
  ReceiveQueue& operator[](std::uint32_t slot) { return queues_[slot]; }
  /// XRC: returns the slot of the queue with this number, if it belongs to the domain; else kNone.
  std::uint32_t find_shared(std::uint32_t number, std::uint32_t xrc_domain) {
    const std::uint32_t slot = number < numbered_.size() ? numbered_[number] : kNone;
    return slot != kNone && queues_[slot].xrc_domain() == xrc_domain ? slot : kNone;
  }
  static constexpr std::uint32_t kNone = base::Slab<ReceiveQueue>::kNone;
  /// Releases the queue for a queue pair that is freed. `is_own`: only that queue pair used it, and it is freed, too.
  void let_go(std::uint32_t slot, bool is_own);
  /// For QueuePairs::check(). `users`: queue pairs, by slot. Adds the queues that feed a completion stream.
  void check(const std::vector<std::uint32_t>& users, std::map<const CompletionStream*, std::uint32_t>& of_stream);

 private:
  friend class PairsHandover;

  static constexpr std::uint32_t kMost = 131'072;

  std::uint32_t take_number(std::uint32_t slot);

  base::Slab<ReceiveQueue> queues_{kMost};
  std::vector<std::uint32_t> numbered_;  // slots, by number
  std::uint32_t number_ = 0;             // last number given; a freed one is used again only after all others
};

}  // namespace fairlead::qp
