#pragma once
// Two connected queue pairs of two engines of a host, with counts of what went over the fast path.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "qp/end_of_pair_for_tests.hpp"

namespace fairlead::qp {

struct PairsForTests {
  static QueuePair& pair(QueuePairs& pairs, PairHandle handle) { return *pairs.pairs_.find(handle); }
  /// Sets the state to that after `count` posted, sent and received requests.
  static void skip(QueuePairs& pairs, PairHandle handle, std::uint32_t count) {
    QueuePair& one = pair(pairs, handle);
    SendQueue& sends = one.sends;
    for (RequestNumber* number :
         {&sends.head_, &sends.next_, &sends.tail_, &sends.begun_, &sends.acked_, &sends.answered_end_})
      *number = *number + count;
    sends.begin(sends.sequence_of({0}) - count);
    pairs.accounts()[one.index].sends.add(one.incarnation, count);
    ReceiveQueue& queue = pairs.receives_[one.receives];
    queue.head_ = queue.head_ + count;
    queue.tail_ = queue.tail_ + count;
    one.receives_begin = one.receives_begin + count;
  }
};

class FastPath : public engine::EnginePair {
 protected:
  void SetUp() override {
    engine::EnginePair::SetUp();
    for (EndOfPair* end : {&a_, &b_}) end->open();
    a_.connect(b_, now_);
    b_.connect(a_, now_);
    // The first request takes the general path, which looks up its sender.
    for (int i = 0; i < 2; ++i) {
      a_.receive(1, a_.sge(0, 8));
      b_.receive(1, b_.sge(0, 8));
      a_.send(1, a_.sge(8, 8), now_);
      b_.send(1, b_.sge(8, 8), now_);
      pass();
      pass();
      pass();
      ASSERT_EQ(a_.completions().size(), 2u);
      ASSERT_EQ(b_.completions().size(), 2u);
    }
    sent_ = a_.pairs().counters().fast_sends;
    arrived_ = b_.pairs().counters().fast_receives;
  }
  void fill(std::size_t at, std::size_t bytes, std::uint64_t seed) {
    for (std::size_t i = 0; i < bytes; ++i) a_.memory[at + i] = static_cast<std::byte>(seed * 31 + i * 7 + 1);
  }
  std::uint64_t sent() const { return a_.pairs().counters().fast_sends - sent_; }
  std::uint64_t arrived() const { return b_.pairs().counters().fast_receives - arrived_; }
  /// Makes passes until an end has `count` completions.
  std::vector<verbs::WorkCompletion> wait_for(EndOfPair& end, std::size_t count) {
    std::vector<verbs::WorkCompletion> all = end.completions();
    for (int step = 0; step < 100'000 && all.size() < count; ++step) {
      pass();
      for (const auto& one : end.completions()) all.push_back(one);
    }
    EXPECT_EQ(all.size(), count);
    all.resize(count);
    return all;
  }
  /// The queue pair must become quiet, also when the shm transport referred to memory.
  void expect_quiet(EndOfPair& end) {
    for (int step = 0; step < 100; ++step) pass();
    EXPECT_TRUE(end.pairs().is_quiet(end.handle));
  }

  EndOfPair a_{near_}, b_{far_};
  std::uint64_t sent_ = 0, arrived_ = 0;
};

}  // namespace fairlead::qp
