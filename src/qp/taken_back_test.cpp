// Long requests and answers by reference: the receiver reads them in memory of the sender, which takes the memory back
// if the sender gives up on the receiver. What was read then must have no effect.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "qp/end_of_pair_for_tests.hpp"

namespace fairlead::qp {
namespace {

using namespace std::chrono_literals;

using verbs::QpState;
using verbs::QpType;
using verbs::SendOpcode;
using verbs::WcStatus;

constexpr std::uint32_t kSize = 20'000;
constexpr std::uint32_t kRights = verbs::access::remote_write | verbs::access::remote_read;

/// Each end also has a region of `kSize` bytes that the peer maps only for messages by reference.
class TakenBack : public engine::EnginePair {
 protected:
  TakenBack() : engine::EnginePair(true) {}

  void open(QpType type) {
    for (EndOfPair* end : {&a_, &b_}) end->open(type);
    a_.connect(b_, now_);
    b_.connect(a_, now_);
    a_key_ = share(a_, a_memory_);
    b_key_ = share(b_, b_memory_);
    b_.receive(1, b_.sge(0, 8));
    a_.receive(1, a_.sge(0, 8));
    a_.send(1, a_.sge(8, 8), now_);
    b_.send(1, b_.sge(8, 8), now_);
    for (int step = 0; step < 100; ++step) pass();
    ASSERT_EQ(a_.completions().size(), 2U);
    ASSERT_EQ(b_.completions().size(), 2U);
  }
  std::uint32_t share(EndOfPair& end, std::span<std::byte>& memory) const {
    const auto pages = reinterpret_cast<std::uintptr_t>(end.memory.data() + 4095) / 4096 * 4096;
    const std::span whole(reinterpret_cast<std::byte*>(pages) + (64 << 10), 32 << 10);  // only whole pages can be moved
    EXPECT_TRUE(end.side.engine->connections()->published()->move(whole, false, true));
    memory = whole.first(kSize);
    return end.pairs().regions().add({.base = memory.data(),
                                      .length = memory.size(),
                                      .iova = reinterpret_cast<std::uintptr_t>(memory.data()),
                                      .access = verbs::access::local_write | kRights,
                                      .domain = 1});
  }
  static verbs::Sge all_of(std::span<std::byte> memory, std::uint32_t key) {
    return {reinterpret_cast<std::uintptr_t>(memory.data()), kSize, key};
  }
  /// Posts a request of `a_` that sends the shared memory.
  void post(SendOpcode opcode, std::uint64_t id) {
    const verbs::Sge from = all_of(a_memory_, a_key_);
    ASSERT_EQ(a_.post({.id = id,
                       .sges = {&from, 1},
                       .opcode = opcode,
                       .flags = verbs::send_flags::signaled,
                       .rkey = b_.key,
                       .remote_addr = b_.at(0)},
                      now_),
              0);
  }
  /// Lets one side alone make passes, until it has given up on the other, with `count` messages by reference. Its
  /// memory is then the program's again.
  void run_alone(engine::DirectSide& side, std::span<std::byte> memory, std::uint64_t count = 1) {
    ASSERT_EQ(side.counter("shm.messages_pulled"), count);
    for (int step = 0; step < 100; ++step) {
      now_ += 100ms;
      side.engine->progress(now_);
    }
    ASSERT_EQ(side.counter("shm.messages_failed"), count);
    std::ranges::fill(memory, std::byte{0xBB});
  }
  static bool has_arrived(EndOfPair& end, std::uint64_t id) {
    return std::ranges::any_of(end.completions(),
                               [&](const auto& one) { return one.wr_id == id && one.status == WcStatus::success; });
  }

  EndOfPair a_{near_, kRights}, b_{far_, kRights};
  std::span<std::byte> a_memory_, b_memory_;
  std::uint32_t a_key_ = 0, b_key_ = 0;
};

class TakenBackRequest : public TakenBack, public testing::WithParamInterface<std::pair<QpType, SendOpcode>> {};
INSTANTIATE_TEST_SUITE_P(, TakenBackRequest,
                         testing::Values(std::pair{QpType::rc, SendOpcode::send},
                                         std::pair{QpType::uc, SendOpcode::send},
                                         std::pair{QpType::rc, SendOpcode::write_imm}));

TEST_P(TakenBackRequest, DoesNotArrive) {
  open(GetParam().first);
  b_.receive(2, b_.sge(0, kSize));
  post(GetParam().second, 2);
  near_.engine->progress(now_);
  run_alone(near_, a_memory_);
  for (int step = 0; step < 100; ++step) pass();
  EXPECT_FALSE(has_arrived(b_, 2));
  EXPECT_EQ(b_.pairs().counters().dropped_taken_back, 1U);
  EXPECT_TRUE(near_.engine->pairs().is_quiet(a_.handle));
}

TEST_P(TakenBackRequest, ArrivesWholeIfItIsReadInTime) {
  open(GetParam().first);
  std::ranges::fill(a_memory_, std::byte{0xAA});
  b_.receive(2, b_.sge(0, kSize));
  post(GetParam().second, 2);
  near_.engine->progress(now_);
  far_.engine->progress(now_);
  EXPECT_TRUE(has_arrived(b_, 2));
  EXPECT_TRUE(std::ranges::equal(std::span(b_.memory).first(kSize), a_memory_));
  EXPECT_EQ(near_.counter("shm.messages_pulled"), 1U);
}

// The first of two sends finds no receive, so the second one has to wait in a copy.
TEST_F(TakenBack, ARequestThatWaitsForItsTurnDoesNotArrive) {
  open(QpType::rc);
  post(SendOpcode::send, 2);
  post(SendOpcode::send, 3);
  near_.engine->progress(now_);
  run_alone(near_, a_memory_, 2);
  far_.engine->progress(now_);
  EXPECT_EQ(b_.pairs().counters().dropped_taken_back, 1U);
  EXPECT_EQ(b_.pairs().counters().held_bytes_most, 0U);
  for (int step = 0; step < 100; ++step) pass();
}

// Behind a request that is not complete, a read is sent as a message, and answered with one.
TEST_F(TakenBack, TheAnswerToAReadDoesNotArrive) {
  open(QpType::rc);
  b_.receive(2, b_.sge(0, 8));
  a_.send(2, a_.sge(8, 8), now_);
  const verbs::Sge into = a_.sge(0, kSize);
  ASSERT_EQ(a_.post({.id = 3,
                     .sges = {&into, 1},
                     .opcode = SendOpcode::read,
                     .flags = verbs::send_flags::signaled,
                     .rkey = b_key_,
                     .remote_addr = reinterpret_cast<std::uintptr_t>(b_memory_.data())},
                    now_),
            0);
  near_.engine->progress(now_);
  far_.engine->progress(now_);
  run_alone(far_, b_memory_);
  near_.engine->progress(now_);
  EXPECT_FALSE(has_arrived(a_, 3));
  EXPECT_EQ(a_.pairs().counters().dropped_taken_back, 1U);
  for (int step = 0; step < 100; ++step) pass();
}

}  // namespace
}  // namespace fairlead::qp
