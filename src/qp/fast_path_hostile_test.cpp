// The fast path under strangers, and under a peer that writes any record that it likes.

#include <cstddef>
#include <cstdint>
#include <random>

#include "qp/fast_path_for_tests.hpp"

namespace fairlead::qp {
namespace {

using verbs::QpState;
using verbs::WcOpcode;
using verbs::WcStatus;

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

}  // namespace
}  // namespace fairlead::qp
