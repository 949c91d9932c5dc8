#pragma once
// What an application remembers of a queue pair that it has at the host engine: enough to say at once whether a post is
// taken, and to end what is pending if the host engine does. Under the lock of its HostPairs.

#include <bit>
#include <cstdint>
#include <vector>

#include <fairlead/verbs/work_completion.hpp>

#include "base/ensure.hpp"
#include "qp/pair_core.hpp"

namespace fairlead::host {

/// Requests that have no completion yet, in order.
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
  verbs::QpAttributes attributes{};  // as it was last told; what it met on its way the host engine knows
  bool has_failed = false;           // its completions found no room
  std::uint32_t sends_posted = 0, receives_posted = 0;  // of this incarnation
  PendingRequests sends, receives;

  verbs::QpState state() const { return attributes.state; }
  /// Another incarnation: nothing is posted.
  void begin(std::uint32_t its_incarnation) {
    incarnation = its_incarnation;
    has_failed = false;
    sends_posted = receives_posted = 0;
    sends.clear();
    receives.clear();
  }
};

/// A shared receive queue.
struct ClientQueue {
  qp::ReceiveQueuePlan plan;
  std::uint32_t generation = 0;
  std::uint32_t posted = 0;  // ever
  std::uint32_t taken = 0;   // of them, at least
  bool is_open = false;
};

}  // namespace fairlead::host
