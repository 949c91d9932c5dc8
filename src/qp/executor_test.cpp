#include "qp/executor.hpp"

#include <cstring>

#include "qp/parts_for_tests.hpp"

namespace fairlead::qp {
namespace {

using verbs::Cause;
using verbs::WcStatus;
using Wire = wire::Operation;

class Execution : public testing::Test {
 protected:
  /// Executes a request as the responder does.
  bool execute(const wire::Envelope& envelope, std::span<const std::byte> bytes) {
    if (parts_.executor.execute_plain(pair_, envelope, bytes)) return true;
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    return parts_.executor.execute(pair_, envelope, {&piece, 1}, bytes.size(), answer_);
  }
  wire::Envelope request(Wire operation, std::uint64_t at = 0) const {
    return {.operation = operation, .key = wire::encode(wire::RequestKey{pair_.turn.next(), parts_.key}), .offset = at};
  }

  PartsForTests parts_;
  QueuePair& pair_ = *parts_.pair;
  Answer answer_;
  std::array<std::byte, 40> bytes_ = [] {
    std::array<std::byte, 40> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i + 1);
    return bytes;
  }();
};

TEST_F(Execution, OfSendsIsTheSameForPlainAndOtherOnes) {
  for (const bool has_heard : {false, true}) {
    pair_.has_heard = has_heard;
    const std::uint64_t fast = parts_.shared.counters.fast_receives;
    for (const std::size_t size : {0, 1, 8, 33, 40}) {
      parts_.memory.fill({});
      parts_.receive(size, 40);
      ASSERT_TRUE(execute(request(Wire::pair_send), std::span(bytes_).first(size)));
      const auto all = parts_.completions();
      ASSERT_EQ(all.size(), 1u);
      EXPECT_EQ(all[0].wr_id, size);
      EXPECT_EQ(all[0].opcode, verbs::WcOpcode::receive);
      EXPECT_EQ(all[0].byte_len, size);
      EXPECT_EQ(std::memcmp(&parts_.memory[100], bytes_.data(), size), 0);
      EXPECT_EQ(parts_.memory[100 + size], std::byte{});
    }
    EXPECT_EQ(parts_.shared.counters.fast_receives - fast, has_heard ? 5u : 4u) << "not the first of all";
  }
  EXPECT_EQ(pair_.turn.last(), wire::RequestSequence{9});
}

TEST_F(Execution, WithoutAReceiveLeavesEverythingAsItWas) {
  pair_.has_heard = true;
  EXPECT_FALSE(execute(request(Wire::pair_send), bytes_));
  EXPECT_EQ(answer_.verdict, Verdict::rnr);
  EXPECT_EQ(pair_.turn.next(), wire::RequestSequence{0});
  EXPECT_EQ(pair_.state(), verbs::QpState::rts);
  parts_.receive(1, 40);
  EXPECT_TRUE(execute(request(Wire::pair_send), bytes_));
}

TEST_F(Execution, IntoAReceiveThatIsTooSmallEndsThePair) {
  pair_.has_heard = true;
  parts_.receive(1, 39);
  EXPECT_FALSE(execute(request(Wire::pair_send), bytes_));
  EXPECT_EQ(answer_.verdict, Verdict::invalid);
  EXPECT_EQ(parts_.completions().at(0).status, WcStatus::loc_len_err);
  EXPECT_EQ(pair_.state(), verbs::QpState::err);
  EXPECT_EQ(parts_.memory[100], std::byte{}) << "nothing is written";
}

TEST_F(Execution, OfWritesAsksForKeyRangeAndRight) {
  ASSERT_TRUE(execute(request(Wire::pair_write, 500), bytes_));
  EXPECT_EQ(std::memcmp(&parts_.memory[500], bytes_.data(), bytes_.size()), 0);
  const Judgement outside = parts_.executor.judge(pair_, request(Wire::pair_write, 4080), bytes_.size());
  EXPECT_EQ(outside.answer.verdict, Verdict::access);
  EXPECT_EQ(outside.answer.cause, Cause::out_of_range);
  pair_.attributes.access_flags = verbs::access::remote_read;
  EXPECT_EQ(parts_.executor.judge(pair_, request(Wire::pair_write, 0), 8).answer.cause, Cause::no_right);
}

TEST_F(Execution, OfAnAtomicIsRemembered) {
  wire::Envelope add = request(Wire::pair_atomic, 800);
  add.flags = wire::request_flags::fetch_add;
  add.a = 5;
  ASSERT_TRUE(execute(add, {}));
  EXPECT_EQ(answer_.value, 0u);
  EXPECT_EQ(parts_.memory[800], std::byte{5});
  EXPECT_EQ(pair_.atomics.find({0}), 0u);
  EXPECT_EQ(parts_.executor.judge(pair_, request(Wire::pair_atomic, 801), 0).answer.cause, Cause::misaligned);
}

}  // namespace
}  // namespace fairlead::qp
