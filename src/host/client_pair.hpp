#pragma once
// An application's record of a queue pair at the host engine. It suffices to accept or refuse posts at once, and to end
// what is pending if the host engine ends. The lock of its HostPairs guards it.

#include <bit>
#include <cstdint>
#include <vector>

#include <fairlead/verbs/work_completion.hpp>

#include "base/ensure.hpp"
#include "qp/pair_core.hpp"

namespace fairlead::host {

/// Requests without a completion so far, in order.
class PendingRequests {
 public:
  struct Entry {
    std::uint64_t id = 0;
    verbs::WcOpcode opcode = verbs::WcOpcode::send;
  };

  PendingRequests() = default;
  explicit PendingRequests(std::uint32_t depth) : entries_(std::bit_ceil(depth + 1)) {}

  bool is_empty() const { return head_ == tail_; }
  void push(const Entry& entry) { entries_[tail_++ & (entries_.size() - 1)] = entry; }
  Entry pop() { return entries_[head_++ & (entries_.size() - 1)]; }
  void drop(std::uint32_t count) {
    const std::uint32_t left = tail_ - head_;
    head_ += count < left ? count : left;
  }
  void clear() { head_ = tail_; }

 private:
  std::vector<Entry> entries_;
  std::uint32_t head_ = 0, tail_ = 0;
};

struct ClientPair {
  qp::PairPlan plan;
  qp::PairHandle handle;
  std::uint32_t number = 0;
  std::uint32_t incarnation = 0;
  verbs::QpAttributes attributes{};                     // as last reported; the host engine knows later changes
  bool has_failed = false;                              // its completions found no room
  bool owes_failure = false;                            // and the host engine is not told: the ring was full
  std::uint32_t sends_posted = 0, receives_posted = 0;  // in this incarnation
  PendingRequests sends, receives;

  verbs::QpState state() const { return attributes.state; }
  /// Begins another incarnation, in which nothing is posted.
  void begin(std::uint32_t its_incarnation) {
    incarnation = its_incarnation;
    has_failed = owes_failure = false;
    sends_posted = receives_posted = 0;
    sends.clear();
    receives.clear();
  }
};

/// The record of a shared receive queue.
struct ClientQueue {
  qp::ReceiveQueuePlan plan;
  std::uint32_t generation = 0;
  std::uint32_t posted = 0;  // total
  std::uint32_t taken = 0;   // lower bound of those consumed
  bool is_open = false;
};

}  // namespace fairlead::host
