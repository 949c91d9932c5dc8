// The fast path of short sends between two engines of a host (Requester, Executor), and the cases that need the general
// path. The order of requests must be the same on both.

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
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

namespace {

using namespace std::chrono_literals;

using verbs::Cause;
using verbs::QpState;
using verbs::SendOpcode;
using verbs::WcOpcode;
using verbs::WcStatus;

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

TEST_F(FastPath, GoesStraightBothWaysAndItsAcknowledgementComesWithTheAnswer) {
  const std::uint64_t answers = b_.pairs().counters().answers_sent;
  constexpr std::uint64_t kRounds = 500;
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    fill(100, 24, i);
    b_.receive(i, b_.sge(200, 24));
    a_.receive(i, a_.sge(200, 24));
    a_.send(2 * i, a_.sge(100, 24), now_);
    far_.engine->progress(now_);
    const auto there = b_.completions();
    ASSERT_EQ(there.size(), i == 0 ? 1u : 2u);  // and the completion of its last answer
    EXPECT_EQ(there.back().opcode, WcOpcode::receive);
    EXPECT_EQ(there.back().wr_id, i);
    EXPECT_EQ(there.back().byte_len, 24u);
    ASSERT_EQ(std::memcmp(&b_.memory[200], &a_.memory[100], 24), 0);
    b_.send(2 * i + 1, b_.sge(200, 24), now_);
    near_.engine->progress(now_);
    const auto here = a_.completions();
    ASSERT_EQ(here.size(), 2u);
    EXPECT_EQ(here[0].opcode, WcOpcode::send);
    EXPECT_EQ(here[0].wr_id, 2 * i);
    EXPECT_EQ(here[0].status, WcStatus::success);
    EXPECT_EQ(here[1].opcode, WcOpcode::receive);
  }
  EXPECT_EQ(sent(), kRounds);
  EXPECT_EQ(arrived(), kRounds);
  EXPECT_EQ(b_.pairs().counters().answers_sent, answers);
  EXPECT_EQ(wait_for(b_, 1)[0].wr_id, 2 * kRounds - 1) << "without a message to go with, it goes alone";
  expect_quiet(a_);
  expect_quiet(b_);
}

TEST_F(FastPath, TakesInlineDataEmptyMessagesAndManyAtOnce) {
  std::array<std::byte, 48> stack;
  stack.fill(std::byte{7});
  const verbs::Sge raw{reinterpret_cast<std::uintptr_t>(stack.data()), 48, 0};
  for (std::uint64_t id = 0; id < 3; ++id) b_.receive(id, b_.sge(1000 * id, 768));
  const verbs::Sge whole = a_.sge(5000, 768);
  fill(5000, 768, 3);
  const std::array<verbs::SendRequest, 3> requests{
      verbs::SendRequest{.id = 0, .sges = {&raw, 1}, .flags = verbs::send_flags::inlined}, verbs::SendRequest{.id = 1},
      verbs::SendRequest{.id = 2, .sges = {&whole, 1}, .flags = verbs::send_flags::signaled}};
  std::size_t taken = 0;
  ASSERT_EQ(a_.pairs().post_send(a_.handle, requests, taken, now_), 0);
  stack.fill(std::byte{0});
  const auto there = wait_for(b_, 3);
  EXPECT_EQ(sent(), 3u);
  EXPECT_EQ(arrived(), 3u);
  for (std::uint64_t id = 0; id < 3; ++id) EXPECT_EQ(there[id].wr_id, id);
  EXPECT_EQ(there[0].byte_len, 48u);
  EXPECT_TRUE(std::all_of(&b_.memory[0], &b_.memory[48], [](std::byte byte) { return byte == std::byte{7}; }));
  EXPECT_EQ(there[1].byte_len, 0u);
  EXPECT_EQ(std::memcmp(&b_.memory[2000], &a_.memory[5000], 768), 0);
  EXPECT_EQ(wait_for(a_, 1)[0].wr_id, 2u);
}

TEST_F(FastPath, WaitsForAReceiveAndKeepsTheOrder) {
  for (std::uint64_t id = 0; id < 4; ++id) {
    fill(100 * id, 16, id);
    a_.send(id, a_.sge(100 * id, 16), now_);
  }
  EXPECT_EQ(sent(), 4u);
  for (int step = 0; step < 100; ++step) pass();
  EXPECT_EQ(arrived(), 0u);
  EXPECT_GT(b_.pairs().counters().receiver_not_ready, 0u);
  EXPECT_TRUE(a_.completions().empty());
  for (std::uint64_t id = 0; id < 5; ++id) b_.receive(id, b_.sge(100 * id, 16));
  a_.send(4, a_.sge(0, 16), now_);
  const auto there = wait_for(b_, 5);
  const auto here = wait_for(a_, 5);
  for (std::uint64_t id = 0; id < 5; ++id) {
    EXPECT_EQ(there[id].wr_id, id);
    EXPECT_EQ(here[id].wr_id, id);
    EXPECT_EQ(here[id].status, WcStatus::success);
    EXPECT_EQ(std::memcmp(&b_.memory[100 * id], &a_.memory[id == 4 ? 0 : 100 * id], 16), 0);
  }
  // Later sends take the fast path again.
  const std::uint64_t before = arrived();
  b_.receive(5, b_.sge(0, 16));
  a_.send(5, a_.sge(0, 16), now_);
  wait_for(b_, 1);
  EXPECT_EQ(arrived(), before + 1);
}

TEST_F(FastPath, EndsBothSidesIfTheReceiveIsTooSmall) {
  b_.receive(1, b_.sge(0, 8));
  b_.receive(2, b_.sge(0, 8));
  a_.send(1, a_.sge(0, 9), now_);
  a_.send(2, a_.sge(0, 8), now_);
  const auto there = wait_for(b_, 2);
  EXPECT_EQ(there[0].status, WcStatus::loc_len_err);
  EXPECT_EQ(there[1].status, WcStatus::wr_flush_err);
  const auto here = wait_for(a_, 2);
  EXPECT_EQ(here[0].status, WcStatus::rem_inv_req_err);
  EXPECT_EQ(here[1].status, WcStatus::wr_flush_err);
  EXPECT_EQ(a_.state(), QpState::err);
  EXPECT_EQ(b_.state(), QpState::err);
  EXPECT_EQ(arrived(), 0u);
  expect_quiet(a_);
}

TEST_F(FastPath, EndsBothSidesIfTheReceivesMemoryIsNotThereAnyMore) {
  b_.receive(1, {b_.at(0), 8, b_.key + 1});
  a_.send(1, a_.sge(0, 8), now_);
  EXPECT_EQ(wait_for(b_, 1)[0].status, WcStatus::loc_prot_err);
  EXPECT_EQ(wait_for(a_, 1)[0].status, WcStatus::rem_op_err);
  EXPECT_EQ(arrived(), 0u);
}

TEST_F(FastPath, TellsOfWrongMemoryOfItsOwn) {
  a_.send(1, {a_.at(0), 8, a_.key + 1}, now_);
  const auto here = wait_for(a_, 1);
  EXPECT_EQ(here[0].status, WcStatus::loc_prot_err);
  EXPECT_EQ(sent(), 0u);
}

TEST_F(FastPath, FindsAQueuePairThatHasFailedMeanwhile) {
  b_.receive(1, b_.sge(0, 8));
  a_.send(1, a_.sge(0, 8), now_);
  EXPECT_EQ(sent(), 1u);
  b_.change(QpState::err, now_);
  EXPECT_EQ(wait_for(b_, 1)[0].status, WcStatus::wr_flush_err);
  const auto here = wait_for(a_, 1);
  EXPECT_EQ(here[0].status, WcStatus::retry_exc_err);
  EXPECT_EQ(here[0].vendor_err, std::to_underlying(Cause::queue_pair_not_ready));
  EXPECT_EQ(arrived(), 0u);
  expect_quiet(a_);
}

TEST_F(FastPath, FindsAQueuePairThatIsDestroyedMeanwhile) {
  b_.receive(1, b_.sge(0, 8));
  a_.send(1, a_.sge(0, 8), now_);
  b_.pairs().begin_close(b_.handle, now_);
  b_.pairs().free_pair(b_.handle);
  const auto here = wait_for(a_, 1);
  EXPECT_EQ(here[0].status, WcStatus::retry_exc_err);
  EXPECT_EQ(here[0].vendor_err, std::to_underlying(Cause::no_such_queue_pair));
  EXPECT_TRUE(b_.completions().empty());
  EXPECT_EQ(arrived(), 0u);
}

// The sender posts, resets and connects again before the receiver polls. The receiver must ignore messages of the
// earlier incarnation.
TEST_F(FastPath, ForgetsWhatWasSentInALifeBefore) {
  b_.receive(1, b_.sge(0, 8));
  a_.send(1, a_.sge(0, 8), now_);
  a_.change(QpState::reset, now_);
  for (int step = 0; step < 10; ++step) pass();
  EXPECT_TRUE(a_.pairs().is_quiet(a_.handle));
  EXPECT_TRUE(a_.completions().empty());
  EXPECT_EQ(b_.completions().size(), 1u) << "it had been sent";
  b_.change(QpState::reset, now_);
  a_.connect(b_, now_);
  b_.connect(a_, now_);
  b_.receive(2, b_.sge(0, 8));
  a_.send(2, a_.sge(0, 8), now_);
  EXPECT_EQ(wait_for(b_, 1)[0].wr_id, 2u);
  EXPECT_EQ(wait_for(a_, 1)[0].wr_id, 2u);
}

TEST_F(FastPath, EndsWithThePeerWhenItsTimerHasEnded) {
  const base::Instant begun = now_;
  a_.send(1, a_.sge(0, 8), now_);
  a_.send(2, a_.sge(0, 8), now_);
  EXPECT_EQ(sent(), 2u);
  far_.engine->connections()->end(far_.engine->connections()->find(engine::direct_place(1)), "tired");
  far_.engine->progress(now_);
  std::vector<verbs::WorkCompletion> here;
  for (int step = 0; step < 100'000 && here.size() < 2; ++step) {
    pass(false);
    for (const auto& one : a_.completions()) here.push_back(one);
  }
  ASSERT_EQ(here.size(), 2u);
  EXPECT_EQ(here[0].status, WcStatus::retry_exc_err);
  EXPECT_EQ(here[1].status, WcStatus::wr_flush_err);
  constexpr auto kTimer = 2 * std::chrono::nanoseconds(4096LL << 14);
  EXPECT_GE(now_ - begun, kTimer);
  EXPECT_LT(now_ - begun, kTimer + 1ms);
  EXPECT_TRUE(a_.pairs().is_quiet(a_.handle));
}

TEST_F(FastPath, TakesNothingFromAStranger) {
  auto stranger = shm::Connections::open(engine::direct_place(3), 103, engine::direct_options()).value();
  ASSERT_TRUE(stranger->ask(engine::direct_place(2), {}));
  for (int step = 0; step < 10; ++step) pass(), stranger->attend({});
  shm::Connection& to = stranger->peer(stranger->find(engine::direct_place(2)));
  ASSERT_EQ(to.state, shm::Connection::State::open);
  b_.receive(1, b_.sge(0, 8));
  const wire::RequestSequence expected = PairsForTests::pair(b_.pairs(), b_.handle).turn.next();
  const std::uint64_t refused = b_.pairs().counters().refused_not_ready;
  constexpr std::size_t kBytes = wire::shm_head_bytes(wire::ShmKind::ordered) + 8;
  std::byte* const body = to.writer.reserve(kBytes);
  ASSERT_NE(body, nullptr);
  wire::encode_shm(body, wire::ShmKind::ordered,
                   {.operation = wire::Operation::pair_send,
                    .source_port = a_.number | 1U << 24,
                    .target_port = b_.number,
                    .key = wire::encode(wire::RequestKey{.sequence = expected})},
                   8);
  to.writer.publish(kBytes, to.reader.read());
  to.alert();
  for (int step = 0; step < 10; ++step) pass();
  EXPECT_EQ(b_.pairs().counters().refused_not_ready, refused + 1);
  EXPECT_TRUE(b_.completions().empty());
  EXPECT_EQ(to.state, shm::Connection::State::open) << "it may have meant well";
  a_.send(1, a_.sge(0, 8), now_);
  EXPECT_EQ(wait_for(b_, 1)[0].wr_id, 1u);
}

// A receive without SGEs accepts empty messages only, and no SGE may be read.
TEST_F(FastPath, TakesNoBytesIntoAReceiveWithoutPieces) {
  std::size_t taken = 0;
  const verbs::ReceiveRequest request{.id = 5, .sges = {}};
  for (const std::uint32_t bytes : {0U, 8U}) {
    ASSERT_EQ(b_.pairs().post_receive(b_.handle, {&request, 1}, taken), 0);
    a_.send(1, a_.sge(0, bytes), now_);
    const auto there = wait_for(b_, 1), here = wait_for(a_, 1);
    EXPECT_EQ(there[0].wr_id, 5u);
    EXPECT_EQ(there[0].status, bytes == 0 ? WcStatus::success : WcStatus::loc_len_err);
    EXPECT_EQ(here[0].status, bytes == 0 ? WcStatus::success : WcStatus::rem_inv_req_err);
  }
}

// A message in chunks, of which the first and last one is empty. A record of the shm transport may say so.
TEST_F(FastPath, TakesAWriteWithoutBytesInPieces) {
  shm::Connection& to = near_.engine->connections()->peer(near_.engine->connections()->find(engine::direct_place(2)));
  const wire::RequestSequence turn = PairsForTests::pair(b_.pairs(), b_.handle).turn.next();
  constexpr std::size_t kBytes = wire::shm_head_bytes(wire::ShmKind::first);
  std::byte* const body = to.writer.reserve(kBytes);
  ASSERT_NE(body, nullptr);
  wire::encode_shm(body, wire::ShmKind::first,
                   {.operation = wire::Operation::pair_write,
                    .source_port = a_.number | 1U << 24,
                    .target_port = b_.number,
                    .key = wire::encode(wire::RequestKey{turn, b_.key}),
                    .offset = b_.at(0)},
                   0);
  to.writer.publish(kBytes, to.reader.read());
  to.alert();
  for (int step = 0; step < 10; ++step) pass();
  EXPECT_EQ(PairsForTests::pair(b_.pairs(), b_.handle).turn.next(), turn + 1);
  EXPECT_EQ(b_.state(), QpState::rts);
}

// The connected peer writes arbitrary sequences and acknowledgements.
TEST_F(FastPath, BelievesItsPeerOnlyWhatIsPossible) {
  std::mt19937_64 random(3);
  shm::Connection& to = near_.engine->connections()->peer(near_.engine->connections()->find(engine::direct_place(2)));
  QueuePair& pair = PairsForTests::pair(b_.pairs(), b_.handle);
  std::uint64_t received = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    if (random() % 4 != 0) b_.receive(i, b_.sge(0, static_cast<std::uint32_t>(200 + random() % 4000)));
    const std::uint32_t off = random() % 3 == 0 ? static_cast<std::uint32_t>(random() % 5) - 2 : 0;
    const std::uint32_t acked =
        random() % 2 == 0 ? static_cast<std::uint32_t>(random()) : pair.sends.sequence_of({0}).value;
    const std::size_t size = random() % 200;
    const std::size_t bytes = wire::shm_head_bytes(wire::ShmKind::ordered) + size;
    std::byte* const body = to.writer.reserve(bytes);
    ASSERT_NE(body, nullptr);
    wire::encode_shm(body, wire::ShmKind::ordered,
                     {.operation = random() % 8 == 0 ? wire::Operation::pair_write : wire::Operation::pair_send,
                      .flags = static_cast<std::uint16_t>(random() % 16),
                      .source_port = a_.number | static_cast<std::uint32_t>(random() % 3) << 24,
                      .target_port = b_.number | static_cast<std::uint32_t>(random() % 3) << 24,
                      .key = wire::encode(wire::RequestKey{.sequence = pair.turn.next() + off}),
                      .a = acked},
                     size);
    to.writer.publish(bytes, to.reader.read());
    to.alert();
    if (random() % 2 == 0) b_.send(i, b_.sge(0, 8), now_);
    for (int step = 0; step < 3; ++step) pass();
    for (const auto& one : b_.completions()) received += one.opcode == WcOpcode::receive ? 1 : 0;
    ASSERT_EQ(to.state, shm::Connection::State::open);
    if (b_.state() == QpState::err || count_between(pair.sends.head(), pair.sends.tail()) > 90) {
      b_.change(QpState::reset, now_);
      (void)b_.completions();
      b_.connect(a_, now_);
    }
  }
  EXPECT_GT(received, 500u);
  EXPECT_GT(arrived(), 200u);
  EXPECT_EQ(b_.memory[5000], std::byte{0}) << "behind all receives";
}

// Sequences may wrap any number of times.
TEST_F(FastPath, GoesOnAfterTwoThousandMillionMessages) {
  QueuePair& sender = PairsForTests::pair(a_.pairs(), a_.handle);
  QueuePair& receiver = PairsForTests::pair(b_.pairs(), b_.handle);
  for (const std::uint32_t more : {1U << 31, 100U, 1U << 30}) {
    sender.sends.begin(sender.sends.sequence_of({0}) + more);
    receiver.turn.pass_to(receiver.turn.next() + more);
    for (std::uint64_t id = 0; id < 4; ++id) {
      if (id != 2) b_.receive(id, b_.sge(0, 8));
      a_.send(id, a_.sge(0, 8), now_);
      pass();
    }
    b_.receive(2, b_.sge(0, 8));
    for (const auto& one : wait_for(a_, 4)) EXPECT_EQ(one.status, WcStatus::success);
    EXPECT_EQ(wait_for(b_, 4).size(), 4u);
  }
  EXPECT_EQ(b_.pairs().counters().refused_not_ready, 0u);
}

TEST_F(FastPath, KnowsARepeatedRequestAlsoWhenTheSequenceHasJustGoneRound) {
  RequestTurn& turn = PairsForTests::pair(b_.pairs(), b_.handle).turn;
  for (int half = 0; half < 2; ++half) turn.pass_to(turn.next() + (1U << 31));
  const std::uint64_t duplicates = b_.pairs().counters().duplicates;
  shm::Connection& to = near_.engine->connections()->peer(near_.engine->connections()->find(engine::direct_place(2)));
  write_record(to, {.operation = wire::Operation::pair_send,
                    .source_port = a_.number | 1U << 24,
                    .target_port = b_.number,
                    .key = wire::encode(wire::RequestKey{.sequence = turn.next() - 10})});
  EXPECT_EQ(b_.pairs().counters().duplicates, duplicates + 1);
  EXPECT_EQ(b_.pairs().counters().refused_not_ready, 0u);
}

// The numbers of requests and receives may wrap, too, in rings of any size.
TEST_F(FastPath, GoesOnWhereItsNumbersGoRound) {
  for (EndOfPair* end : {&a_, &b_}) PairsForTests::skip(end->pairs(), end->handle, 0U - 50 - 2);
  for (std::uint64_t id = 0; id < 120; ++id) b_.receive(id, b_.sge(100 * id, 100));
  for (std::uint64_t id = 0; id < 120; ++id) {
    fill(100 * id, 100, id);
    a_.send(id, a_.sge(100 * id, 100), now_);
  }
  const auto there = wait_for(b_, 120), here = wait_for(a_, 120);
  for (std::uint64_t id = 0; id < 120; ++id) {
    EXPECT_EQ(there[id].wr_id, id);
    EXPECT_EQ(here[id].wr_id, id);
    EXPECT_EQ(here[id].status, WcStatus::success);
  }
  EXPECT_EQ(std::memcmp(&b_.memory[0], &a_.memory[0], std::size_t{120} * 100), 0);
}

// Unreliable requests get no acknowledgements, however many there are.
TEST_F(FastPath, UnreliableOnesGoOnAfterTwoThousandMillionMessages) {
  EndOfPair from{near_}, to{far_};
  from.open(verbs::QpType::uc);
  to.open(verbs::QpType::uc);
  from.connect(to, now_);
  to.connect(from, now_);
  PairsForTests::skip(from.pairs(), from.handle, (1U << 31) + 5);
  PairsForTests::pair(from.pairs(), from.handle).sends.acknowledge({0});
  for (std::uint64_t id = 0; id < 4; ++id) {
    to.receive(id, to.sge(0, 8));
    from.send(id, from.sge(0, 8), now_);
    EXPECT_EQ(wait_for(to, 1)[0].wr_id, id);
    EXPECT_EQ(wait_for(from, 1)[0].wr_id, id);
  }
}

// Requests of both paths in random order, with late receives.
TEST_F(FastPath, KeepsTheOrderOfStraightAndOtherRequests) {
  constexpr std::uint64_t kRequests = 4000, kAreas = 64, kArea = 3000;
  std::mt19937_64 random(11);
  std::uint64_t posted = 0, done = 0, receives = 0, received = 0;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order;  // of sends: request and size
  constexpr std::size_t kWriteAt = 400'000;                    // behind the memory of all receives
  for (int step = 0; step < 2'000'000 && (done < kRequests || received < order.size()); ++step) {
    while (posted < kRequests && posted - done < kAreas && random() % 3 != 0) {
      const std::uint64_t draw = random() % 16;
      const auto size = static_cast<std::uint32_t>(draw == 0 ? random() % kArea : random() % 60);
      const std::size_t at = posted % kAreas * kArea;
      fill(at, size, posted);
      const std::array<verbs::Sge, 2> pieces{a_.sge(at, size / 2), a_.sge(at + size / 2, size - size / 2)};
      const verbs::Sge piece = a_.sge(at, size);
      verbs::SendRequest request{.id = posted, .sges = {&piece, 1}, .flags = verbs::send_flags::signaled};
      if (draw == 1) request.sges = pieces;
      if (draw == 2) request.flags |= verbs::send_flags::fence;
      if (draw == 3) request.flags |= verbs::send_flags::inlined;
      if (draw == 4) request.flags |= verbs::send_flags::solicited;
      if (draw == 5) request.opcode = SendOpcode::send_imm;
      if (draw == 6) {
        request.opcode = SendOpcode::write;
        request.rkey = b_.key;
        request.remote_addr = b_.at(kWriteAt + at);
      }
      if (request.opcode != SendOpcode::write) order.emplace_back(posted, size);
      ASSERT_EQ(a_.post(request, now_), 0);
      ++posted;
    }
    while (receives < kRequests && receives - received < 100 && random() % 3 != 0) {
      b_.receive(receives, b_.sge(receives % 100 * kArea, kArea));
      ++receives;
    }
    // A request in the other direction now and then, to carry acknowledgements.
    const verbs::SendRequest back{.id = 0, .flags = verbs::send_flags::signaled};
    if (random() % 4 == 0 && b_.post(back, now_) == 0) a_.receive(0, a_.sge(1 << 19, 8));
    pass(random() % 3 != 0);
    for (const auto& one : b_.completions()) {
      ASSERT_EQ(one.status, WcStatus::success);
      if (one.opcode != WcOpcode::receive) continue;
      ASSERT_LT(received, order.size());
      const auto [request, size] = order[received];
      ASSERT_EQ(one.wr_id, received);
      ASSERT_EQ(one.byte_len, size);
      const std::byte* const there = &b_.memory[received % 100 * kArea];
      for (std::uint32_t i = 0; i < size; ++i)
        ASSERT_EQ(there[i], static_cast<std::byte>(std::size_t{request} * 31 + i * 7 + 1)) << request << " at " << i;
      ++received;
    }
    for (const auto& one : a_.completions()) {
      ASSERT_EQ(one.status, WcStatus::success);
      if (one.opcode == WcOpcode::receive) continue;
      ASSERT_EQ(one.wr_id, done);
      ++done;
    }
  }
  EXPECT_EQ(done, kRequests);
  EXPECT_EQ(received, order.size());
  EXPECT_GT(sent(), kRequests / 4);
  EXPECT_GT(arrived(), kRequests / 16);
  EXPECT_LT(arrived(), kRequests * 15 / 16);
  EXPECT_GT(b_.pairs().counters().receiver_not_ready, 0u);
  expect_quiet(a_);
  expect_quiet(b_);
}

// The peer does not read its ring. A caller that waits for the queue pair, or for the memory, has the peer expelled.
TEST_F(FastPath, WhatIsInFlightOfAQueuePairEndsWithItsPeer) {
  a_.send(1, a_.sge(0, 20'000), now_);
  pass(false);
  ASSERT_FALSE(a_.pairs().is_quiet(a_.handle));
  a_.pairs().press_for(a_.handle);
  for (int step = 0; step < 3; ++step) pass(false);
  EXPECT_TRUE(a_.pairs().is_quiet(a_.handle));
  EXPECT_EQ(near_.counter("engine.expelled.holds_memory"), 1u);
}

TEST_F(FastPath, WhatIsInFlightOfARegionEndsWithItsPeer) {
  a_.send(1, a_.sge(0, 20'000), now_);
  pass(false);
  ASSERT_TRUE(a_.pairs().regions().is_held(a_.key));
  a_.pairs().press_for_region(a_.key + 256);
  for (int step = 0; step < 3; ++step) pass(false);
  EXPECT_TRUE(a_.pairs().regions().is_held(a_.key)) << "of another region";
  a_.pairs().press_for_region(a_.key);
  for (int step = 0; step < 3; ++step) pass(false);
  EXPECT_FALSE(a_.pairs().regions().is_held(a_.key));
  EXPECT_EQ(near_.counter("engine.expelled.holds_memory"), 1u);
}

}  // namespace
}  // namespace fairlead::qp
