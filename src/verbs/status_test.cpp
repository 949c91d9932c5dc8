// Each completion status, its effects on both sides, and the resulting states of the queue pairs.

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

enum class Operation { send, write, write_imm, read, atomic };

struct Row {
  const char* name;
  WcStatus status;
  Cause cause;
  Operation operation = Operation::send;
  PairOptions options{};
  // The deviations that cause the error:
  std::uint32_t length = 100;
  std::uint32_t lkey_change = 0, rkey_change = 0;  // added to the key
  std::uint64_t remote_offset = 64;
  std::uint32_t receive_length = 1000;  // 0: no receive is posted
  std::uint32_t receive_key_change = 0;
  QpState state_of_b = QpState::rts;
  // The expected result at the peer:
  WcStatus receive_status = WcStatus::success;  // success: nothing is expected except a flush
  QpState b_after = QpState::rts;
  int event = -1;  // at the peer
  bool is_remote_done = false;
};

constexpr std::uint32_t kNoRights = access::local_write;
PairOptions with(auto&& change) {
  PairOptions options;
  change(options);
  return options;
}

const Row kRows[] = {
    {.name = "ReceiveTooShort",
     .status = WcStatus::rem_inv_req_err,
     .cause = Cause::too_long,
     .receive_length = 99,
     .receive_status = WcStatus::loc_len_err,
     .b_after = QpState::err},
    {.name = "ReceiveKeyUnknown",
     .status = WcStatus::rem_op_err,
     .cause = Cause::key_unknown,
     .receive_key_change = 1,
     .receive_status = WcStatus::loc_prot_err,
     .b_after = QpState::err},
    {.name = "LocalKeyUnknown", .status = WcStatus::loc_prot_err, .cause = Cause::key_unknown, .lkey_change = 1},
    {.name = "LocalKeyUnknownOfAWrite",
     .status = WcStatus::loc_prot_err,
     .cause = Cause::key_unknown,
     .operation = Operation::write,
     .lkey_change = 1},
    {.name = "LocalKeyUnknownOfARead",
     .status = WcStatus::loc_prot_err,
     .cause = Cause::key_unknown,
     .operation = Operation::read,
     .lkey_change = 1},
    {.name = "LocalKeyUnknownOfAnAtomic",
     .status = WcStatus::loc_prot_err,
     .cause = Cause::key_unknown,
     .operation = Operation::atomic,
     .length = 8,
     .lkey_change = 1,
     .is_remote_done = true},
    {.name = "AtomicOfFourBytes",
     .status = WcStatus::loc_len_err,
     .cause = Cause::too_long,
     .operation = Operation::atomic,
     .length = 4},
    {.name = "NoReadsAllowedHere",
     .status = WcStatus::loc_qp_op_err,
     .cause = Cause::bad_request,
     .operation = Operation::read,
     .options = with([](auto& o) { o.max_rd_atomic = 0; })},
    {.name = "RemoteKeyUnknownOfAWrite",
     .status = WcStatus::rem_access_err,
     .cause = Cause::key_unknown,
     .operation = Operation::write,
     .rkey_change = 1,
     .b_after = QpState::err,
     .event = static_cast<int>(AsyncEventType::qp_access_err)},
    {.name = "RemoteKeyUnknownOfARead",
     .status = WcStatus::rem_access_err,
     .cause = Cause::key_unknown,
     .operation = Operation::read,
     .rkey_change = 1,
     .b_after = QpState::err,
     .event = static_cast<int>(AsyncEventType::qp_access_err)},
    {.name = "RemoteKeyUnknownWinsOverTheLocalOne",
     .status = WcStatus::rem_access_err,
     .cause = Cause::key_unknown,
     .operation = Operation::atomic,
     .length = 8,
     .lkey_change = 1,
     .rkey_change = 1,
     .b_after = QpState::err,
     .event = static_cast<int>(AsyncEventType::qp_access_err)},
    {.name = "RemoteKeyUnknownOfAWriteWithImmediate",
     .status = WcStatus::rem_access_err,
     .cause = Cause::key_unknown,
     .operation = Operation::write_imm,
     .rkey_change = 1,
     .receive_status = WcStatus::loc_access_err,
     .b_after = QpState::err,
     .event = static_cast<int>(AsyncEventType::qp_access_err)},
    {.name = "BeyondTheRemoteRegion",
     .status = WcStatus::rem_access_err,
     .cause = Cause::out_of_range,
     .operation = Operation::write,
     .remote_offset = Side::kMemory - 99,
     .b_after = QpState::err,
     .event = static_cast<int>(AsyncEventType::qp_access_err)},
    {.name = "AddressThatWraps",
     .status = WcStatus::rem_access_err,
     .cause = Cause::out_of_range,
     .operation = Operation::read,
     .remote_offset = ~0ULL - 1'000'000,
     .b_after = QpState::err,
     .event = static_cast<int>(AsyncEventType::qp_access_err)},
    {.name = "WriteNotEnabled",
     .status = WcStatus::rem_inv_req_err,
     .cause = Cause::no_right,
     .operation = Operation::write,
     .options = with([](auto& o) { o.rights = kNoRights; }),
     .b_after = QpState::err,
     .event = static_cast<int>(AsyncEventType::qp_req_err)},
    {.name = "ReadNotEnabled",
     .status = WcStatus::rem_inv_req_err,
     .cause = Cause::no_right,
     .operation = Operation::read,
     .options = with([](auto& o) { o.rights = kNoRights; }),
     .b_after = QpState::err,
     .event = static_cast<int>(AsyncEventType::qp_req_err)},
    {.name = "ReadsNotTakenThere",
     .status = WcStatus::rem_inv_req_err,
     .cause = Cause::no_right,
     .operation = Operation::read,
     .options = with([](auto& o) { o.max_dest_rd_atomic = 0; }),
     .b_after = QpState::err,
     .event = static_cast<int>(AsyncEventType::qp_req_err)},
    {.name = "MisalignedAtomic",
     .status = WcStatus::rem_inv_req_err,
     .cause = Cause::misaligned,
     .operation = Operation::atomic,
     .length = 8,
     .lkey_change = 1,
     .remote_offset = 68,
     .b_after = QpState::err,
     .event = static_cast<int>(AsyncEventType::qp_req_err)},
    {.name = "NoReceivePosted",
     .status = WcStatus::rnr_retry_exc_err,
     .cause = Cause::no_receive_posted,
     .options = with([](auto& o) { o.rnr_retry = 2; }),
     .receive_length = 0},
    {.name = "PeerInReset",
     .status = WcStatus::retry_exc_err,
     .cause = Cause::queue_pair_not_ready,
     .options = with([](auto& o) { o.timeout = 1, o.retry_cnt = 0; }),
     .receive_length = 0,
     .state_of_b = QpState::reset,
     .b_after = QpState::reset},
    {.name = "PeerInInit",
     .status = WcStatus::retry_exc_err,
     .cause = Cause::queue_pair_not_ready,
     .options = with([](auto& o) { o.timeout = 1, o.retry_cnt = 0; }),
     .state_of_b = QpState::init,
     .b_after = QpState::init},
};

class Statuses : public ::testing::TestWithParam<std::tuple<Road, const Row*>> {};
std::vector<const Row*> all_rows() {
  std::vector<const Row*> rows;
  for (const Row& row : kRows) rows.push_back(&row);
  return rows;
}
INSTANTIATE_TEST_SUITE_P(
    , Statuses,
    ::testing::Combine(::testing::ValuesIn(roads({Road::self, Road::shm, Road::udp, Road::faulty, Road::host})),
                       ::testing::ValuesIn(all_rows())),
    [](const auto& one) { return to_string(std::get<0>(one.param)) + "_" + std::get<1>(one.param)->name; });

TEST_P(Statuses, HasItsEffectsOnBothSides) {
  const auto& [road, row_pointer] = GetParam();
  const Row& row = *row_pointer;
  PairOptions options = row.options;
  if (road == Road::faulty) options.retry_cnt = std::max<std::uint8_t>(options.retry_cnt, 3);  // an answer may be lost
  Connected c(road, options, row.state_of_b);
  if (row.receive_length != 0) {
    for (std::uint64_t id : {50u, 51u}) {
      Sge to = c.b.sge(1'000'000, row.receive_length);
      to.lkey += row.receive_key_change;
      ASSERT_EQ(c.pb.post_receive({.id = id, .sges = {&to, 1}}), 0);
    }
  }
  // A preceding request that succeeds (if the peer exists), and a following one that is flushed, although it is
  // unsignaled.
  Sge from = c.a.sge(0, row.length);
  from.lkey += row.lkey_change;
  const bool has_predecessor = row.options.rights == Side::kAllRights && row.state_of_b == QpState::rts;
  if (has_predecessor) {
    ASSERT_EQ(c.pa.post_send(
                  {.id = 1, .sges = {}, .opcode = SendOpcode::write, .flags = send_flags::signaled, .remote_addr = 0}),
              0);
  }
  SendRequest request{.id = 2,
                      .sges = {&from, 1},
                      .opcode = SendOpcode::send,
                      .rkey = c.b.region.rkey() + row.rkey_change,
                      .remote_addr = c.b.remote(row.remote_offset),
                      .compare_add = 1};
  switch (row.operation) {
    case Operation::send:
      break;
    case Operation::write:
      request.opcode = SendOpcode::write;
      break;
    case Operation::write_imm:
      request.opcode = SendOpcode::write_imm;
      break;
    case Operation::read:
      request.opcode = SendOpcode::read;
      break;
    case Operation::atomic:
      request.opcode = SendOpcode::fetch_add;
      break;
  }
  ASSERT_EQ(c.pa.post_send(request), 0);
  const int third = c.pa.post_send({.id = 3, .sges = {}, .opcode = SendOpcode::send});
  ASSERT_EQ(third, 0);

  std::size_t at = 0;
  const auto done = c.at_a(has_predecessor ? 3 : 2);
  ASSERT_EQ(done.size(), has_predecessor ? 3u : 2u);
  if (has_predecessor) {
    EXPECT_EQ(done[at].wr_id, 1u);
    EXPECT_EQ(done[at++].status, WcStatus::success);
  }
  EXPECT_EQ(done[at].wr_id, 2u);
  EXPECT_EQ(done[at].status, row.status) << to_string(done[at].status) << ": "
                                         << explain(static_cast<Cause>(done[at].vendor_err));
  EXPECT_EQ(static_cast<Cause>(done[at++].vendor_err), row.cause);
  EXPECT_EQ(done[at].wr_id, 3u);
  EXPECT_EQ(done[at].status, WcStatus::wr_flush_err);
  EXPECT_EQ(c.pa.state(), QpState::err);

  EXPECT_EQ(c.pb.state(), row.b_after);
  if (row.b_after == QpState::err && row.receive_length != 0) {
    const auto received = c.at_b(2);
    ASSERT_EQ(received.size(), 2u);
    EXPECT_EQ(received[0].wr_id, 50u);
    EXPECT_EQ(received[0].status,
              row.receive_status == WcStatus::success ? WcStatus::wr_flush_err : row.receive_status);
    EXPECT_EQ(received[1].wr_id, 51u);
    EXPECT_EQ(received[1].status, WcStatus::wr_flush_err);
  }
  const auto events = Connected::events(c.b);
  if (row.event >= 0) {
    EXPECT_EQ(std::ranges::count(events, static_cast<AsyncEventType>(row.event)), 1);
  } else {
    EXPECT_EQ(std::ranges::count(events, AsyncEventType::qp_access_err), 0);
  }
  if (row.operation == Operation::atomic) {
    std::uint64_t word = 0;
    std::memcpy(&word, c.b.memory.data() + 64, 8);
    EXPECT_EQ(word, row.is_remote_done ? 1u : 0u);
  }
  // A request posted after the error is flushed after the others: programs drain a queue this way.
  ASSERT_EQ(c.pa.post_send({.id = 4, .sges = {}, .opcode = SendOpcode::send}), 0);
  const WorkCompletion marker = c.one_at_a();
  EXPECT_EQ(marker.wr_id, 4u);
  EXPECT_EQ(marker.status, WcStatus::wr_flush_err);
}

class StatusesOfPeers : public ::testing::TestWithParam<Road> {};
INSTANTIATE_TEST_SUITE_P(, StatusesOfPeers,
                         ::testing::ValuesIn(roads({Road::self, Road::shm, Road::udp, Road::host, Road::hosts})),
                         [](const auto& one) { return to_string(one.param); });

TEST_P(StatusesOfPeers, ADestroyedQueuePairIsNoLongerThere) {
  PairOptions options;
  options.timeout = 1;
  options.retry_cnt = 0;
  Connected c(GetParam(), options);
  ASSERT_TRUE(c.pb.destroy());
  ASSERT_EQ(c.pa.post_send({.id = 1, .sges = {}}), 0);
  const WorkCompletion failed = c.one_at_a();
  EXPECT_EQ(failed.status, WcStatus::retry_exc_err);
  EXPECT_EQ(static_cast<Cause>(failed.vendor_err), Cause::no_such_queue_pair);
}

// The closing thread releases members that the other threads must not read (ThreadSanitizer detects it if they do).
TEST(QueuePairs, AreDestroyedByOneOfSeveralThreads) {
  Side side(1, Road::self);
  for (int i = 0; i < 20; ++i) {
    QueuePair pair = *QueuePair::create(side.domain, {.send_queue = &side.queue, .receive_queue = &side.queue});
    std::atomic<int> destroyed{0};
    {
      std::array<std::jthread, 3> threads;
      for (std::jthread& each : threads) each = std::jthread([&] { destroyed += pair.destroy() ? 1 : 0; });
    }
    EXPECT_EQ(destroyed, 1);
  }
}

TEST_P(StatusesOfPeers, AnotherPartnerIsNotServed) {
  PairOptions options;
  options.timeout = 1;
  options.retry_cnt = 0;
  Connected c(GetParam(), options, QpState::init);
  QpAttributes other = c.attributes_of_b();
  other.dest_qp_num = c.pa.number() + 1;
  move(c.pb, other, QpState::rtr);
  ASSERT_EQ(c.pa.post_send({.id = 1, .sges = {}}), 0);
  const WorkCompletion failed = c.one_at_a();
  EXPECT_EQ(failed.status, WcStatus::retry_exc_err);
  EXPECT_EQ(static_cast<Cause>(failed.vendor_err), Cause::sequence_mismatch);
}

TEST_P(StatusesOfPeers, APeerThatIsLateIsWaitedFor) {
  Connected c(GetParam(), {}, QpState::init);
  const Sge to = c.b.sge(0, 10);
  ASSERT_EQ(c.pb.post_receive({.id = 5, .sges = {&to, 1}}), 0);
  ASSERT_EQ(c.pa.post_send({.id = 1, .sges = {}, .flags = send_flags::signaled}), 0);
  WorkCompletion none;
  EXPECT_EQ(c.a.queue.poll({&none, 1}), 0);
  move(c.pb, c.attributes_of_b(), QpState::rtr);
  EXPECT_EQ(c.one_at_b().wr_id, 5u);
  EXPECT_EQ(c.one_at_a().status, WcStatus::success);
  const auto events = Connected::events(c.b);
  EXPECT_EQ(std::ranges::count(events, AsyncEventType::comm_est), 1);
}

TEST_P(StatusesOfPeers, ASenderWaitsForEverForAReceiveIfItSaysSo) {
  Connected c(GetParam());
  c.a.fill(0, 100'000, 3);
  const Sge from = c.a.sge(0, 100'000), to = c.b.sge(0, 100'000);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(c.pa.post_send({.id = id, .sges = {&from, 1}, .flags = send_flags::signaled}), 0);
  }
  const auto begun = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(20)) {
    WorkCompletion none;
    ASSERT_EQ(c.a.queue.poll({&none, 1}), 0);
    ASSERT_EQ(c.b.queue.poll({&none, 1}), 0);
  }
  for (std::uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(c.pb.post_receive({.id = id, .sges = {&to, 1}}), 0);
    EXPECT_EQ(c.one_at_b().wr_id, id);
    EXPECT_EQ(c.one_at_a().wr_id, id);
  }
  EXPECT_EQ(std::memcmp(c.a.memory.data(), c.b.memory.data(), 100'000), 0);
}

TEST(StatusesOfStrangers, AnAddressWithoutAnEngineIsTold) {
  Side a(1, Road::udp);
  QueuePair pair = std::move(*make_pair_at(a));
  Device nobody = a.device;
  nobody.gid[15] = 9;
  PairOptions options;
  options.timeout = 14;
  options.retry_cnt = 0;
  move_up(pair, attributes_for(options, nobody, 0x5002, 1, 1), QpState::rts);
  ASSERT_EQ(pair.post_send({.id = 1, .sges = {}}), 0);
  const auto done = collect(a, a, 1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, WcStatus::retry_exc_err);
  EXPECT_EQ(static_cast<Cause>(done[0].vendor_err), Cause::port_unreachable) << done[0].vendor_err;
}

TEST(StatusesOfStrangers, WhoGoesAwayWithRequestsUnansweredIsTold) {
  auto b = std::make_unique<Side>(std::uint8_t{6}, Road::udp);
  Side a(5, Road::udp, "1000");
  PairOptions options;
  options.timeout = 14;
  options.retry_cnt = 1;
  QueuePair pa = std::move(*make_pair_at(a));
  {
    QueuePair pb = std::move(*make_pair_at(*b));
    move_up(pa, attributes_for(options, b->device, pb.number(), 1, 1), QpState::rts);
    move_up(pb, attributes_for(options, a.device, pa.number(), 1, 1), QpState::rts);
    ASSERT_EQ(pa.post_send({.id = 1, .sges = {}}), 0);  // no receive is posted: the receiver sends RNR NAKs
  }
  b.reset();
  const auto done = collect(a, a, 1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, WcStatus::retry_exc_err);
}

}  // namespace
}  // namespace fairlead::verbs
