// The fast path where sequences and numbers go round.

#include <cstdint>
#include <cstring>

#include "qp/fast_path_for_tests.hpp"

namespace fairlead::qp {
namespace {

using verbs::WcStatus;

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

// A request that is copied in turns has begun, but is not done for a while.
TEST_F(FastPath, UnreliableOnesTakeTurnsAfterTwoThousandMillionMessages) {
  std::vector<std::byte> memory(CopyTurn::kBytes + 4096);
  EndOfPair from{near_}, to{near_};
  from.open(verbs::QpType::uc);
  to.open(verbs::QpType::uc);
  from.connect(to, now_);
  to.connect(from, now_);
  PairsForTests::skip(from.pairs(), from.handle, (1U << 31) + 5);
  PairsForTests::pair(from.pairs(), from.handle).sends.acknowledge({0});
  const std::uint64_t at = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uint32_t key =
      from.pairs().regions().add({.base = memory.data(),
                                  .length = memory.size(),
                                  .iova = at,
                                  .access = verbs::access::local_write | verbs::access::remote_write,
                                  .domain = 1});
  const verbs::Sge whole{at, static_cast<std::uint32_t>(memory.size()), key};
  ASSERT_EQ(from.post({.id = 3,
                       .sges = {&whole, 1},
                       .opcode = verbs::SendOpcode::write,
                       .flags = verbs::send_flags::signaled,
                       .rkey = key,
                       .remote_addr = at},
                      now_),
            0);
  EXPECT_TRUE(from.completions().empty());
  EXPECT_TRUE(near_.engine->progress(now_));
  const auto done = from.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].wr_id, 3U);
}

}  // namespace
}  // namespace fairlead::qp
