// What arrives: every operation over every road.

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

class Transfer : public ::testing::TestWithParam<Road> {};
INSTANTIATE_TEST_SUITE_P(, Transfer,
                         ::testing::ValuesIn(roads({Road::self, Road::shm, Road::rings, Road::udp, Road::faulty,
                                                    Road::host, Road::hosts})),
                         [](const auto& one) { return to_string(one.param); });

constexpr std::uint32_t kSizes[] = {0, 1, 8, 100, 768, 769, 4096, 65'000, 200'000};

TEST_P(Transfer, SendsArriveInOrderWithTheirSizes) {
  Connected c(GetParam());
  std::uint64_t id = 0;
  for (const std::uint32_t size : kSizes) {
    c.a.fill(0, size, size);
    const Sge from = c.a.sge(0, size), to = c.b.sge(1'000'000, 300'000);
    ASSERT_EQ(c.pb.post_receive({.id = ++id, .sges = {&to, 1}}), 0);
    ASSERT_EQ(c.pa.post_send({.id = 100 + id,
                              .sges = {&from, size == 0 ? 0u : 1u},
                              .opcode = SendOpcode::send_imm,
                              .flags = send_flags::signaled,
                              .imm = size + 1}),
              0);
    const WorkCompletion received = c.one_at_b();
    EXPECT_EQ(received.wr_id, id);
    EXPECT_EQ(received.status, WcStatus::success);
    EXPECT_EQ(received.opcode, WcOpcode::receive);
    EXPECT_EQ(received.byte_len, size);
    EXPECT_EQ(received.imm, size + 1);
    EXPECT_EQ(received.wc_flags, wc_flags::with_imm);
    EXPECT_EQ(received.qp_num, c.pb.number());
    EXPECT_EQ(std::memcmp(c.a.memory.data(), c.b.memory.data() + 1'000'000, size), 0) << size;
    const WorkCompletion sent = c.one_at_a();
    EXPECT_EQ(sent.wr_id, 100 + id);
    EXPECT_EQ(sent.status, WcStatus::success);
    EXPECT_EQ(sent.opcode, WcOpcode::send);
  }
}

// As in ib_write_lat: both sides only poll memory, and do not poll for completions.
TEST_P(Transfer, UnreliableWritesLeaveThoughNobodyPolls) {
  Connected c(GetParam(), {.type = QpType::uc});
  const auto turn = [](Side& from, QueuePair& pair, Side& to, std::byte value) {
    from.memory[0] = value;
    const Sge piece = from.sge(0, 1);
    from.meet_engine();
    ASSERT_EQ(pair.post_send({.id = 1,
                              .sges = {&piece, 1},
                              .opcode = SendOpcode::write,
                              .flags = 0,
                              .rkey = to.region.rkey(),
                              .remote_addr = to.remote(1)}),
              0);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    // A peer with mapped memory writes without the lock that meet_engine() takes.
    const auto seen = [&] { return std::atomic_ref(to.memory[1]).load(std::memory_order_acquire); };
    for (to.meet_engine(); seen() != value && std::chrono::steady_clock::now() < end; to.meet_engine()) {
      std::this_thread::yield();
    }
    ASSERT_EQ(seen(), value);
  };
  for (int i = 1; i <= 5 && !HasFatalFailure(); ++i) {
    turn(c.a, c.pa, c.b, static_cast<std::byte>(i));
    turn(c.b, c.pb, c.a, static_cast<std::byte>(i));
  }
}

TEST_P(Transfer, WritesAndReadsReachTheOtherSidesMemory) {
  Connected c(GetParam());
  for (const std::uint32_t size : kSizes) {
    c.a.fill(0, size, size + 3);
    const Sge from = c.a.sge(0, size), back = c.a.sge(2'000'000, size);
    const bool is_empty = size == 0;
    c.b.meet_engine();
    ASSERT_EQ(c.pa.post_send({.id = 1,
                              .sges = {&from, is_empty ? 0u : 1u},
                              .opcode = SendOpcode::write,
                              .flags = send_flags::signaled,
                              .rkey = is_empty ? 0 : c.b.region.rkey(),
                              .remote_addr = c.b.remote(5)}),
              0);
    ASSERT_EQ(c.pa.post_send({.id = 2,
                              .sges = {&back, is_empty ? 0u : 1u},
                              .opcode = SendOpcode::read,
                              .flags = send_flags::signaled,
                              .rkey = is_empty ? 0 : c.b.region.rkey(),
                              .remote_addr = c.b.remote(5)}),
              0);
    const auto done = c.at_a(2);
    ASSERT_EQ(done.size(), 2u) << size;
    EXPECT_EQ(done[0].wr_id, 1u);
    EXPECT_EQ(done[0].status, WcStatus::success) << explain(static_cast<Cause>(done[0].vendor_err));
    EXPECT_EQ(done[1].wr_id, 2u);
    EXPECT_EQ(done[1].status, WcStatus::success);
    EXPECT_EQ(done[1].opcode, WcOpcode::read);
    EXPECT_EQ(done[1].byte_len, size);
    c.b.meet_engine();
    EXPECT_EQ(std::memcmp(c.a.memory.data(), c.b.memory.data() + 5, size), 0);
    EXPECT_EQ(std::memcmp(c.a.memory.data(), c.a.memory.data() + 2'000'000, size), 0);
  }
  // Neither has an effect at the peer.
  WorkCompletion none;
  EXPECT_EQ(c.b.queue.poll({&none, 1}), 0);
}

TEST_P(Transfer, AWriteWithImmediateTakesAReceiveAndLeavesItsBufferAlone) {
  Connected c(GetParam());
  c.a.fill(0, 5000, 1);
  c.b.fill(1'000'000, 100, 9);
  const std::vector before(c.b.memory.begin() + 1'000'000, c.b.memory.begin() + 1'000'100);
  const Sge from = c.a.sge(0, 5000), to = c.b.sge(1'000'000, 100);
  ASSERT_EQ(c.pb.post_receive({.id = 9, .sges = {&to, 1}}), 0);
  ASSERT_EQ(c.pa.post_send({.id = 1,
                            .sges = {&from, 1},
                            .opcode = SendOpcode::write_imm,
                            .flags = send_flags::signaled,
                            .imm = 0xABCD,
                            .rkey = c.b.region.rkey(),
                            .remote_addr = c.b.remote(64)}),
            0);
  const WorkCompletion received = c.one_at_b();
  EXPECT_EQ(received.wr_id, 9u);
  EXPECT_EQ(received.opcode, WcOpcode::receive_write_imm);
  EXPECT_EQ(received.byte_len, 5000u);
  EXPECT_EQ(received.imm, 0xABCDu);
  EXPECT_EQ(std::memcmp(c.a.memory.data(), c.b.memory.data() + 64, 5000), 0);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), c.b.memory.begin() + 1'000'000));
  EXPECT_EQ(c.one_at_a().status, WcStatus::success);
}

TEST_P(Transfer, AtomicsAreExecutedOnceEachAndAnswerTheValueBefore) {
  Connected c(GetParam());
  std::uint64_t word = 100;
  std::memcpy(c.b.memory.data() + 8, &word, 8);
  c.b.meet_engine();
  constexpr int kRounds = 60;
  for (int i = 0; i < kRounds; ++i) {
    const Sge to = c.a.sge(8 * static_cast<std::size_t>(i), 8);
    ASSERT_EQ(c.pa.post_send({.id = static_cast<std::uint64_t>(i),
                              .sges = {&to, 1},
                              .opcode = SendOpcode::fetch_add,
                              .flags = send_flags::signaled,
                              .rkey = c.b.region.rkey(),
                              .remote_addr = c.b.remote(8),
                              .compare_add = 3}),
              0);
  }
  const auto done = c.at_a(kRounds);
  ASSERT_EQ(done.size(), std::size_t{kRounds});
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_EQ(done[static_cast<std::size_t>(i)].wr_id, static_cast<std::uint64_t>(i));
    EXPECT_EQ(done[static_cast<std::size_t>(i)].status, WcStatus::success);
    EXPECT_EQ(done[static_cast<std::size_t>(i)].byte_len, 8u);
    std::memcpy(&word, c.a.memory.data() + 8 * i, 8);
    EXPECT_EQ(word, 100u + 3u * static_cast<unsigned>(i));
  }
  const Sge to = c.a.sge(0, 8);
  const SendRequest swap{.id = 1,
                         .sges = {&to, 1},
                         .opcode = SendOpcode::compare_swap,
                         .flags = send_flags::signaled,
                         .rkey = c.b.region.rkey(),
                         .remote_addr = c.b.remote(8),
                         .compare_add = 100 + 3 * kRounds,
                         .swap = 7};
  ASSERT_EQ(c.pa.post_send(swap), 0);
  EXPECT_EQ(c.one_at_a().opcode, WcOpcode::compare_swap);
  ASSERT_EQ(c.pa.post_send(swap), 0);  // does not match any more
  EXPECT_EQ(c.one_at_a().status, WcStatus::success);
  std::memcpy(&word, c.a.memory.data(), 8);
  EXPECT_EQ(word, 7u);
  c.b.meet_engine();
  std::memcpy(&word, c.b.memory.data() + 8, 8);
  EXPECT_EQ(word, 7u);
}

TEST_P(Transfer, AtomicWritesStoreEightBytesInTheirPlace) {
  Connected c(GetParam());
  c.a.fill(0, 64, 9);
  const std::array<Sge, 2> halves{c.a.sge(0, 4), c.a.sge(12, 4)};
  const Sge whole = c.a.sge(8, 8), seven = c.a.sge(0, 7);
  const std::byte* const there = c.b.memory.data() + 1000;
  SendRequest request{.id = 1,
                      .sges = {&whole, 1},
                      .opcode = SendOpcode::atomic_write,
                      .flags = send_flags::signaled,
                      .rkey = c.b.region.rkey(),
                      .remote_addr = c.b.remote(1000)};
  ASSERT_EQ(c.pa.post_send(request), 0);
  const WorkCompletion done = c.one_at_a();
  EXPECT_EQ(done.status, WcStatus::success);
  EXPECT_EQ(done.opcode, WcOpcode::atomic_write);
  c.b.meet_engine();
  EXPECT_EQ(std::memcmp(there, c.a.memory.data() + 8, 8), 0);
  request.sges = halves;
  request.flags |= send_flags::inlined;
  ASSERT_EQ(c.pa.post_send(request), 0);
  EXPECT_EQ(c.one_at_a().status, WcStatus::success);
  c.b.meet_engine();
  EXPECT_EQ(std::memcmp(there, c.a.memory.data(), 4), 0);
  EXPECT_EQ(std::memcmp(there + 4, c.a.memory.data() + 12, 4), 0);
  request.sges = {&seven, 1};
  EXPECT_EQ(c.pa.post_send(request), EINVAL) << "not eight bytes";
  request.sges = {&whole, 1};
  request.remote_addr += 4;
  EXPECT_EQ(c.pa.post_send(request), EINVAL) << "not divisible by eight";
  // A valid address in invalid memory.
  auto shifted = *MemoryRegion::add(
      c.b.domain,
      {.address = c.b.memory.data() + 1004, .length = 64, .access = Side::kAllRights, .iova = std::uint64_t{4096}});
  request.rkey = shifted.rkey();
  request.remote_addr = 4096;
  ASSERT_EQ(c.pa.post_send(request), 0);
  EXPECT_EQ(c.one_at_a().status, WcStatus::rem_inv_req_err);
}

TEST(AtomicWrite, IsOfReliableQueuePairsAlone) {
  PairOptions unreliable;
  unreliable.type = QpType::uc;
  Connected c(Road::self, unreliable);
  const Sge from = c.a.sge(0, 8);
  EXPECT_EQ(c.pa.post_send({.id = 1,
                            .sges = {&from, 1},
                            .opcode = SendOpcode::atomic_write,
                            .rkey = c.b.region.rkey(),
                            .remote_addr = c.b.remote(0)}),
            EINVAL);
}

TEST_P(Transfer, ManyMessagesOfAllSizesKeepTheirOrderBothWays) {
  PairOptions options;
  options.capacity = {.max_send_wr = 64, .max_recv_wr = 256, .max_send_sge = 4, .max_recv_sge = 4, .max_inline = 64};
  Connected c(GetParam(), options);
  constexpr std::uint64_t kMessages = 1500;
  const auto size_of = [](std::uint64_t n) {
    return static_cast<std::uint32_t>(n % 7 == 0 ? 9000 + n : n % 5 == 0 ? 1000 : 16);
  };
  constexpr std::size_t kSlot = 16'384;
  struct End {
    Side& side;
    QueuePair& pair;
    std::uint64_t posted = 0, sent = 0, acked = 0, received = 0;
  };
  std::array<End, 2> ends{{{c.a, c.pa}, {c.b, c.pb}}};
  const auto end_at = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((ends[0].received < kMessages || ends[1].received < kMessages || ends[0].acked < kMessages ||
          ends[1].acked < kMessages) &&
         std::chrono::steady_clock::now() < end_at) {
    for (End& end : ends) {
      while (end.posted < kMessages && end.posted < end.received + 100) {
        const Sge to = end.side.sge(2'000'000 + end.posted % 100 * kSlot, kSlot);
        ASSERT_EQ(end.pair.post_receive({.id = end.posted++, .sges = {&to, 1}}), 0);
      }
      while (end.sent < kMessages) {
        const std::size_t at = end.sent % 64 * kSlot;
        if (end.sent >= end.acked + 64) break;
        end.side.fill(at, size_of(end.sent), static_cast<unsigned>(end.sent));
        const Sge from = end.side.sge(at, size_of(end.sent));
        const int error =
            end.pair.post_send({.id = end.sent,
                                .sges = {&from, 1},
                                .flags = send_flags::signaled | (size_of(end.sent) == 16 ? send_flags::inlined : 0)});
        if (error == ENOMEM) break;
        ASSERT_EQ(error, 0);
        ++end.sent;
      }
      std::array<WorkCompletion, 32> some;
      const int count = end.side.queue.poll(some);
      ASSERT_GE(count, 0);
      for (const WorkCompletion& one : std::span(some).first(static_cast<std::size_t>(count))) {
        ASSERT_EQ(one.status, WcStatus::success) << explain(static_cast<Cause>(one.vendor_err));
        if (one.opcode == WcOpcode::send) {
          ASSERT_EQ(one.wr_id, end.acked++);
          continue;
        }
        ASSERT_EQ(one.wr_id, end.received);
        ASSERT_EQ(one.byte_len, size_of(end.received));
        const std::byte* got = end.side.memory.data() + 2'000'000 + end.received % 100 * kSlot;
        for (std::uint32_t i = 0; i < one.byte_len; i += 13) {
          ASSERT_EQ(got[i], static_cast<std::byte>((i * 131 + static_cast<unsigned>(end.received)) >> 3)) << i;
        }
        ++end.received;
      }
    }
  }
  EXPECT_EQ(ends[0].received, kMessages);
  EXPECT_EQ(ends[1].received, kMessages);
}

}  // namespace
}  // namespace fairlead::verbs
