// Strangers with open sessions, which anybody may have, misuse a whole engine. They guess, forge, acknowledge nothing,
// or begin messages that they never end. Other peers' operations are not affected, and the state kept for strangers is
// bounded.

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/attacked_pair.hpp"
#include "tests/stranger.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using wire::Operation;

constexpr auto kAtMost = 60s;  // for what has to end

class AttackedByPeers : public AttackedPair {
 protected:
  explicit AttackedByPeers(const Node::Settings& settings = {}) : AttackedPair(settings) {}
  void SetUp() override {
    expect_a_transfer_ends_well(true);
    ASSERT_TRUE(stranger_.open_session());
  }
  void TearDown() override { expect_a_transfer_ends_well(false); }

  Stranger stranger_{victim_.core->address(), "127.0.1.1"};
};

// Guesses use all session slots with made-up tokens. The engine refuses each, and answers as many as its budget of
// answers permits.
TEST_F(AttackedByPeers, GuessedTokensAreCountedAndLeadNowhere) {
  const Held before = held();
  const std::vector<std::byte> record = Stranger::record_of({.operation = Operation::done});
  for (std::uint64_t guess = 1; guess <= 20'000; ++guess) {
    wire::Header header;
    header.kind = wire::Kind::data;
    header.slot = guess % 8;
    header.token = guess * 0x9E3779B97F4A7C15;
    stranger_.send_segment(header, record);
    if (guess % 100 == 0) expect_a_transfer_ends_well(true);
    if (HasFatalFailure()) return;
  }
  const std::uint64_t refused = victim_.counter("link.refused.unknown_token");
  EXPECT_GT(refused, 10'000U);
  EXPECT_EQ(victim_.counter("link.refused.wrong_address"), 0U) << "a token was believed";
  EXPECT_EQ(victim_.counter("link.resets_sent") + victim_.counter("link.answers_withheld"), refused);
  EXPECT_EQ(victim_.counter("link.sessions_lost"), 0U);
  EXPECT_EQ(victim_.peers(), 2U);
  expect_held(before, 256 << 10);
}

// Only the peer that was asked can complete an operation. A forger fails even with the operation's name.
TEST_F(AttackedByPeers, NobodyEndsWhatOthersWereAsked) {
  Stranger asked(decent_.core->address(), "127.0.1.2"), forger(decent_.core->address(), "127.0.1.3");
  ASSERT_TRUE(asked.open_session());
  ASSERT_TRUE(forger.open_session());
  for (const bool is_put : {true, false}) {
    std::vector<std::byte> bytes(8);
    const iovec memory{bytes.data(), bytes.size()};
    const engine::Transfer transfer{
        .target = {asked.address(), 9}, .target_epoch = 1, .key = 77, .memory = {&memory, 1}, .length = 8};
    engine::OperationHandle name;
    ASSERT_EQ(
        is_put ? decent_.core->put(decent_.port, transfer, name) : decent_.core->get(decent_.port, transfer, name),
        Status::ok);
    ASSERT_TRUE(asked.listen(1));
    const wire::Envelope request = asked.heard().back().envelope;
    ASSERT_EQ(request.operation, is_put ? Operation::put : Operation::get);

    const std::uint64_t late_before = decent_.counter("engine.dropped.late_answer");
    const std::vector<std::byte> evil(8, std::byte{0xEE});
    constexpr unsigned kForged = 500;
    for (unsigned i = 0; i < kForged; ++i) {
      forger.say({.operation = Operation::done, .source_port = 9, .cookie = request.cookie + i});
      forger.say({.operation = Operation::answer, .source_port = 9, .cookie = request.cookie + i}, evil);
    }
    ASSERT_TRUE(forger.settle());
    EXPECT_EQ(decent_.counter("engine.dropped.late_answer") - late_before, 2 * kForged);
    EXPECT_FALSE(decent_.core->has_event(decent_.port)) << "it has ended by a forged answer";

    const auto operation = is_put ? Operation::done : Operation::answer;
    const std::vector<std::byte> answer(is_put ? 0 : 8, std::byte{0x11});
    asked.say({.operation = operation, .source_port = 9, .cookie = request.cookie}, answer);
    ASSERT_TRUE(asked.settle());
    const auto end = decent_.next();
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end->status, Status::ok);
    EXPECT_EQ(bytes[0], is_put ? std::byte{0} : std::byte{0x11});
  }
}

/// A victim that ends a session after a short time without progress.
class ImpatientVictim : public AttackedByPeers {
 protected:
  ImpatientVictim() : AttackedByPeers({{"give_up_after", "300"}}) {}

  /// The stranger keeps sending until the victim puts it out.
  bool is_put_out_though_it_speaks() {
    const auto until = std::chrono::steady_clock::now() + kAtMost;
    while (!stranger_.is_closed() && std::chrono::steady_clock::now() < until) {
      stranger_.say({.operation = Operation::done});
      stranger_.settle(20ms);
    }
    return stranger_.is_closed();
  }
};

TEST_F(ImpatientVictim, EndsWhatIsNeverAcknowledged) {
  stranger_.acknowledges = false;
  const Held before = held();
  std::vector<std::byte> bytes(8);
  const iovec memory{bytes.data(), bytes.size()};
  engine::OperationHandle name;
  unsigned sent = 0;
  for (Status status = Status::ok; status == Status::ok && sent < 9000; ++sent) {
    status = victim_.core->send(victim_.port,
                                {.to = {stranger_.address(), 9}, .part = {.memory = {&memory, 1}, .length = 8}}, name);
    if (status != Status::ok) break;
  }
  EXPECT_LT(sent, 9000U) << "no bound";
  EXPECT_TRUE(is_put_out_though_it_speaks());
  for (unsigned i = 0; i < sent; ++i) {
    const auto end = victim_.next();
    ASSERT_TRUE(end.has_value()) << i;
    EXPECT_EQ(end->status, Status::silent);
  }
  EXPECT_EQ(victim_.counter("link.messages_failed"), sent);
  EXPECT_EQ(victim_.counter("link.sessions_lost"), 1U);
  expect_held(before, 8 << 20);
}

// Later messages in the same buffer are delivered nevertheless, and the buffer's owner gets it back.
TEST_F(ImpatientVictim, EndsAMessageThatIsBegunAndNeverEnded) {
  std::vector<std::byte> inbox(65'536);
  const iovec memory{inbox.data(), inbox.size()};
  engine::OperationHandle receive;
  ASSERT_EQ(victim_.core->post_receive(
                victim_.port, {.memory = {&memory, 1}, .size_min = 1, .messages_max = 8, .cookie = 5}, receive),
            Status::ok);
  stranger_.say_chunk({.operation = Operation::message, .source_port = 9, .target_port = Node::kPort},
                      {.message = 1, .slot = 0, .size = 30'000, .offset = 0}, std::vector<std::byte>(1000));
  ASSERT_TRUE(stranger_.settle());

  std::vector<std::byte> bytes(500);
  const iovec outbox{bytes.data(), bytes.size()};
  engine::OperationHandle name;
  ASSERT_EQ(decent_.core->send(decent_.port,
                               {.to = victim_.name(), .part = {.memory = {&outbox, 1}, .length = bytes.size()}}, name),
            Status::ok);
  const auto sent = decent_.next();
  ASSERT_TRUE(sent.has_value());
  EXPECT_EQ(sent->status, Status::ok);
  EXPECT_FALSE(victim_.core->has_event(victim_.port)) << "events come in the order of the buffer";

  EXPECT_TRUE(is_put_out_though_it_speaks());
  const auto arrived = victim_.next();
  ASSERT_TRUE(arrived.has_value()) << "the decent message is held up for ever";
  EXPECT_EQ(arrived->status, Status::ok);
  EXPECT_EQ(arrived->length, 500U);
  EXPECT_EQ(victim_.counter("engine.dropped.sender_lost"), 1U);
  EXPECT_TRUE(victim_.core->cancel(victim_.port, receive));
  const auto end = victim_.next();
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->is_final);
  EXPECT_EQ(end->status, Status::canceled);
}

}  // namespace
}  // namespace fairlead::tests
