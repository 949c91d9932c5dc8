// Each completion status through the C calls, its effects on both sides, and the resulting states of the queue pairs.
// Not covered here: 3, 14-18, 22 and 23 belong to types of queue pairs that do not exist; 6 to memory windows
// (windows_test); 7 needs a malicious peer (hostile_pairs_test).

#include <algorithm>

#include "doors/ibverbs/two_ends_for_tests.hpp"

namespace fairlead::ibverbs {
namespace {

constexpr ibv_wc_status kNothing = IBV_WC_GENERAL_ERR;
constexpr std::uint32_t kSlow = 14;  // 67 ms, for requests that wait for it

struct StatusRow {
  const char* name;
  ibv_wr_opcode opcode;
  ibv_wc_status status;  // of the request
  std::uint32_t length = 64;
  std::size_t remote_offset = 64;
  // The deviations that cause the error:
  std::uint32_t lkey_change = 0, rkey_change = 0, receive_key_change = 0;
  std::uint32_t receive_length = 256;  // 0: none is posted
  unsigned local_rights = IBV_ACCESS_LOCAL_WRITE;
  unsigned region_rights =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  Connection connection{};
  ibv_qp_state state_of_b = IBV_QPS_RTS;
  // The expected result at the peer:
  ibv_wc_status receive_status = kNothing;  // of the first receive; kNothing: flushed if the queue pair fails
  ibv_qp_state b_after = IBV_QPS_RTS;
  int event = -1;
  std::uint64_t word = 0;  // the target of an atomic afterwards
};

Connection connection_with(auto&& change) {
  Connection connection;
  change(connection);
  return connection;
}
const Connection kNothingAllowed = connection_with([](Connection& c) { c.rights = 0; });
const Connection kNoReadsThere = connection_with([](Connection& c) { c.reads_there = 0; });
const Connection kNoReadsHere = connection_with([](Connection& c) { c.reads = 0; });
const Connection kHasty = connection_with([](Connection& c) { c.timeout = kSlow, c.retries = 1; });
const Connection kTwoTries = connection_with([](Connection& c) { c.receiver_retries = 2; });
const Connection kStranger =
    connection_with([](Connection& c) { c.timeout = kSlow, c.retries = 1, c.other_number = 0xFFF; });

const std::vector<StatusRow>& status_rows() {
  constexpr unsigned kLocal = IBV_ACCESS_LOCAL_WRITE;
  static const std::vector<StatusRow> rows{
      {.name = "LocalLength_Atomic", .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .status = IBV_WC_LOC_LEN_ERR, .length = 16},
      {.name = "LocalLength_Receive",
       .opcode = IBV_WR_SEND,
       .status = IBV_WC_REM_INV_REQ_ERR,
       .receive_length = 63,
       .receive_status = IBV_WC_LOC_LEN_ERR,
       .b_after = IBV_QPS_ERR},
      {.name = "LocalOperation_NoReads",
       .opcode = IBV_WR_RDMA_READ,
       .status = IBV_WC_LOC_QP_OP_ERR,
       .connection = kNoReadsHere},
      {.name = "LocalProtection_Send", .opcode = IBV_WR_SEND, .status = IBV_WC_LOC_PROT_ERR, .lkey_change = 1},
      {.name = "LocalProtection_Write", .opcode = IBV_WR_RDMA_WRITE, .status = IBV_WC_LOC_PROT_ERR, .lkey_change = 1},
      {.name = "LocalProtection_Read", .opcode = IBV_WR_RDMA_READ, .status = IBV_WC_LOC_PROT_ERR, .lkey_change = 1},
      {.name = "LocalProtection_ReadIntoReadOnly",
       .opcode = IBV_WR_RDMA_READ,
       .status = IBV_WC_LOC_PROT_ERR,
       .local_rights = 0},
      {.name = "LocalProtection_AtomicIsDone",
       .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
       .status = IBV_WC_LOC_PROT_ERR,
       .length = 8,
       .lkey_change = 1,
       .word = 1},
      {.name = "LocalProtection_Receive",
       .opcode = IBV_WR_SEND,
       .status = IBV_WC_REM_OP_ERR,
       .receive_key_change = 1,
       .receive_status = IBV_WC_LOC_PROT_ERR,
       .b_after = IBV_QPS_ERR},
      {.name = "LocalAccess_WriteWithImmediate",
       .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
       .status = IBV_WC_REM_ACCESS_ERR,
       .rkey_change = 1,
       .receive_status = IBV_WC_LOC_ACCESS_ERR,
       .b_after = IBV_QPS_ERR,
       .event = IBV_EVENT_QP_ACCESS_ERR},
      {.name = "RemoteInvalid_WriteNotEnabled",
       .opcode = IBV_WR_RDMA_WRITE,
       .status = IBV_WC_REM_INV_REQ_ERR,
       .connection = kNothingAllowed,
       .b_after = IBV_QPS_ERR,
       .event = IBV_EVENT_QP_REQ_ERR},
      {.name = "RemoteInvalid_ReadNotEnabled",
       .opcode = IBV_WR_RDMA_READ,
       .status = IBV_WC_REM_INV_REQ_ERR,
       .connection = kNothingAllowed,
       .b_after = IBV_QPS_ERR,
       .event = IBV_EVENT_QP_REQ_ERR},
      {.name = "RemoteInvalid_AtomicNotEnabled",
       .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
       .status = IBV_WC_REM_INV_REQ_ERR,
       .length = 8,
       .connection = kNothingAllowed,
       .b_after = IBV_QPS_ERR,
       .event = IBV_EVENT_QP_REQ_ERR},
      {.name = "RemoteInvalid_NoReadsThere",
       .opcode = IBV_WR_RDMA_READ,
       .status = IBV_WC_REM_INV_REQ_ERR,
       .connection = kNoReadsThere,
       .b_after = IBV_QPS_ERR,
       .event = IBV_EVENT_QP_REQ_ERR},
      {.name = "RemoteInvalid_MisalignedAtomicWinsOverTheLocalKey",
       .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
       .status = IBV_WC_REM_INV_REQ_ERR,
       .length = 8,
       .remote_offset = 68,
       .lkey_change = 1,
       .b_after = IBV_QPS_ERR,
       .event = IBV_EVENT_QP_REQ_ERR},
      {.name = "RemoteAccess_KeyOfAWrite",
       .opcode = IBV_WR_RDMA_WRITE,
       .status = IBV_WC_REM_ACCESS_ERR,
       .rkey_change = 1,
       .b_after = IBV_QPS_ERR,
       .event = IBV_EVENT_QP_ACCESS_ERR},
      {.name = "RemoteAccess_KeyOfARead",
       .opcode = IBV_WR_RDMA_READ,
       .status = IBV_WC_REM_ACCESS_ERR,
       .rkey_change = 1,
       .b_after = IBV_QPS_ERR,
       .event = IBV_EVENT_QP_ACCESS_ERR},
      {.name = "RemoteAccess_KeyOfAnAtomicWinsOverTheLocalKey",
       .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
       .status = IBV_WC_REM_ACCESS_ERR,
       .length = 8,
       .lkey_change = 1,
       .rkey_change = 1,
       .b_after = IBV_QPS_ERR,
       .event = IBV_EVENT_QP_ACCESS_ERR},
      {.name = "RemoteAccess_BeyondTheRegion",
       .opcode = IBV_WR_RDMA_WRITE,
       .status = IBV_WC_REM_ACCESS_ERR,
       .remote_offset = End::kMemory - 63,
       .b_after = IBV_QPS_ERR,
       .event = IBV_EVENT_QP_ACCESS_ERR},
      {.name = "RemoteAccess_RegionNotWritable",
       .opcode = IBV_WR_RDMA_WRITE,
       .status = IBV_WC_REM_ACCESS_ERR,
       .region_rights = kLocal,
       .b_after = IBV_QPS_ERR,
       .event = IBV_EVENT_QP_ACCESS_ERR},
      {.name = "RemoteAccess_RegionNotReadable",
       .opcode = IBV_WR_RDMA_READ,
       .status = IBV_WC_REM_ACCESS_ERR,
       .region_rights = kLocal,
       .b_after = IBV_QPS_ERR,
       .event = IBV_EVENT_QP_ACCESS_ERR},
      {.name = "RemoteAccess_RegionNotForAtomics",
       .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
       .status = IBV_WC_REM_ACCESS_ERR,
       .length = 8,
       .region_rights = kLocal,
       .b_after = IBV_QPS_ERR,
       .event = IBV_EVENT_QP_ACCESS_ERR},
      {.name = "RetriesExceeded_PeerInReset",
       .opcode = IBV_WR_SEND,
       .status = IBV_WC_RETRY_EXC_ERR,
       .receive_length = 0,
       .connection = kHasty,
       .state_of_b = IBV_QPS_RESET,
       .b_after = IBV_QPS_RESET},
      {.name = "RetriesExceeded_PeerInInit",
       .opcode = IBV_WR_SEND,
       .status = IBV_WC_RETRY_EXC_ERR,
       .connection = kHasty,
       .state_of_b = IBV_QPS_INIT,
       .b_after = IBV_QPS_INIT},
      {.name = "RetriesExceeded_WriteToAPeerInReset",
       .opcode = IBV_WR_RDMA_WRITE,
       .status = IBV_WC_RETRY_EXC_ERR,
       .connection = kHasty,
       .state_of_b = IBV_QPS_RESET,
       .b_after = IBV_QPS_RESET},
      {.name = "RetriesExceeded_ReadOfAPeerInInit",
       .opcode = IBV_WR_RDMA_READ,
       .status = IBV_WC_RETRY_EXC_ERR,
       .connection = kHasty,
       .state_of_b = IBV_QPS_INIT,
       .b_after = IBV_QPS_INIT},
      {.name = "RetriesExceeded_AtomicAtAPeerInInit",
       .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
       .status = IBV_WC_RETRY_EXC_ERR,
       .length = 8,
       .connection = kHasty,
       .state_of_b = IBV_QPS_INIT,
       .b_after = IBV_QPS_INIT},
      {.name = "RetriesExceeded_NoSuchNumber",
       .opcode = IBV_WR_RDMA_WRITE,
       .status = IBV_WC_RETRY_EXC_ERR,
       .connection = kStranger},
      {.name = "ReceiverNotReady",
       .opcode = IBV_WR_SEND,
       .status = IBV_WC_RNR_RETRY_EXC_ERR,
       .receive_length = 0,
       .connection = kTwoTries},
  };
  return rows;
}

class StatusTable : public testing::TestWithParam<std::tuple<Apart, std::size_t>> {};
INSTANTIATE_TEST_SUITE_P(, StatusTable,
                         testing::Combine(testing::Values(Apart::same_device, Apart::two_devices),
                                          testing::Range(std::size_t{0}, status_rows().size())),
                         [](const auto& one) {
                           return std::string(to_string(std::get<0>(one.param))) + "_" +
                                  status_rows()[std::get<1>(one.param)].name;
                         });

TEST_P(StatusTable, BothSidesSeeWhatItSays) {
  const StatusRow& row = status_rows()[std::get<1>(GetParam())];
  TwoEnds ends(std::get<0>(GetParam()), {}, {.region_rights = row.region_rights});
  auto& [a, b] = ends;
  connect(a, b, IBV_QPS_RTS, row.connection);
  connect(b, a, row.state_of_b, {.rights = row.connection.rights, .reads_there = row.connection.reads_there});
  const bool has_receives = row.receive_length != 0 && row.state_of_b != IBV_QPS_RESET;
  for (std::uint64_t id = 50; has_receives && id < 52; ++id) {
    ibv_sge to = b.sge(4096, row.receive_length);
    to.lkey += row.receive_key_change;
    ASSERT_EQ(b.receive(id, to), 0);
  }
  ibv_mr* local = ibv_reg_mr(a.domain, a.memory.data(), a.memory.size(), static_cast<int>(row.local_rights));
  ASSERT_NE(local, nullptr);
  // The failing request, and one that is flushed behind it although it is unsignaled.
  Request request(2, row.opcode, ends, {a.at(0), row.length, local->lkey + row.lkey_change}, row.remote_offset);
  (row.length == 8 || row.length == 16 ? request.wr.atomic.rkey : request.wr.rdma.rkey) += row.rkey_change;
  Request behind(3, IBV_WR_SEND, ends);
  behind.send_flags = 0;
  request.next = &behind;
  ASSERT_EQ(request.post(a), 0);
  const auto done = ends.at_a(2);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].wr_id, 2u);
  EXPECT_STREQ(ibv_wc_status_str(done[0].status), ibv_wc_status_str(row.status));
  EXPECT_EQ(done[0].qp_num, a.pair->qp_num);
  EXPECT_NE(done[0].vendor_err, 0u);
  EXPECT_EQ(done[1].wr_id, 3u);
  EXPECT_EQ(done[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(a.state(), IBV_QPS_ERR);

  EXPECT_EQ(b.state(), row.b_after);
  if (row.b_after == IBV_QPS_ERR && has_receives) {
    const auto received = ends.at_b(2);
    ASSERT_EQ(received.size(), 2u);
    EXPECT_EQ(received[0].wr_id, 50u);
    EXPECT_EQ(received[0].status, row.receive_status == kNothing ? IBV_WC_WR_FLUSH_ERR : row.receive_status);
    EXPECT_EQ(received[1].wr_id, 51u);
    EXPECT_EQ(received[1].status, IBV_WC_WR_FLUSH_ERR);
  }
  const auto events = b.events();
  EXPECT_EQ(std::ranges::count(events, IBV_EVENT_QP_ACCESS_ERR), row.event == IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(std::ranges::count(events, IBV_EVENT_QP_REQ_ERR), row.event == IBV_EVENT_QP_REQ_ERR);
  EXPECT_EQ(b.word(64), row.word);

  // Posted in ERR, it is flushed after the others at both ends: programs drain a queue this way.
  Request marker(4, IBV_WR_SEND, ends);
  ASSERT_EQ(marker.post(a), 0);
  const ibv_wc flushed = ends.one_at_a();
  EXPECT_EQ(flushed.wr_id, 4u);
  EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(ibv_dereg_mr(local), 0);
}

class DatagramStatus : public testing::TestWithParam<Apart> {};
INSTANTIATE_TEST_SUITE_P(, DatagramStatus, testing::Values(Apart::same_device, Apart::two_devices),
                         [](const auto& one) { return to_string(one.param); });

TEST_P(DatagramStatus, LongerThanTheMtuEndsSendingOnly) {
  TwoEnds ends(GetParam(), {.type = IBV_QPT_UD}, {.type = IBV_QPT_UD});
  auto& [a, b] = ends;
  connect(a, b);
  connect(b, a);
  ibv_ah_attr vector = attributes_of(b, {}).ah_attr;
  ibv_ah* to_b = ibv_create_ah(a.domain, &vector);
  vector = attributes_of(a, {}).ah_attr;
  ibv_ah* to_a = ibv_create_ah(b.domain, &vector);
  const auto datagram = [&](const End& from, std::uint64_t id, ibv_ah* to, const End& peer, std::uint32_t length) {
    Request request(id, IBV_WR_SEND, ends, from.sge(0, length));
    request.wr.ud = {.ah = to, .remote_qpn = peer.pair->qp_num, .remote_qkey = kQueueKeyOfEnds};
    return request.post(from);
  };
  ASSERT_EQ(b.receive(50, b.sge(8192, 200)), 0);
  ASSERT_EQ(a.receive(50, a.sge(8192, 200)), 0);
  ASSERT_EQ(datagram(a, 1, to_b, b, 4097), 0);
  EXPECT_EQ(ends.one_at_a().status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(a.state(), IBV_QPS_SQE);
  ASSERT_EQ(datagram(a, 2, to_b, b, 10), 0);
  EXPECT_EQ(ends.one_at_a().status, IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(datagram(b, 3, to_a, a, 10), 0);  // receiving continues
  const ibv_wc received = ends.one_at_a();
  EXPECT_EQ(received.wr_id, 50u);
  EXPECT_EQ(received.byte_len, 50u);
  EXPECT_EQ(received.wc_flags, static_cast<unsigned>(IBV_WC_GRH));
  EXPECT_EQ(received.src_qp, b.pair->qp_num);
  ASSERT_EQ(move_to(a, {}, IBV_QPS_RTS), EINVAL);  // SQ_PSN is not permitted in this transition
  ibv_qp_attr back{};
  back.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(ibv_modify_qp(a.pair, &back, IBV_QP_STATE), 0);
  ASSERT_EQ(datagram(a, 4, to_b, b, 10), 0);
  EXPECT_EQ(ends.one_at_a().status, IBV_WC_SUCCESS);
  EXPECT_EQ(ends.at_b(2).size(), 2u);  // its own send, and the message that arrived
  EXPECT_EQ(ibv_destroy_ah(to_b), 0);
  EXPECT_EQ(ibv_destroy_ah(to_a), 0);
}

// The call refuses errors that the request alone shows.
TEST(ImmediateErrors, AreAnsweredByThePost) {
  TwoEnds ends(Apart::same_device);
  auto& [a, b] = ends;
  connect(a, b);
  connect(b, a);
  Request inline_read(1, IBV_WR_RDMA_READ, ends, a.sge(0, 8));
  inline_read.send_flags |= IBV_SEND_INLINE;
  EXPECT_EQ(inline_read.post(a), EINVAL);
  Request long_inline(1, IBV_WR_SEND, ends, a.sge(0, 1025));
  long_inline.send_flags |= IBV_SEND_INLINE;
  EXPECT_EQ(long_inline.post(a), EINVAL);
  Request window(1, IBV_WR_BIND_MW, ends);
  EXPECT_EQ(window.post(a), EINVAL);
  Request many_pieces(1, IBV_WR_SEND, ends, a.sge(0, 8));
  many_pieces.num_sge = 5;
  EXPECT_EQ(many_pieces.post(a), EINVAL);
  std::array<ibv_sge, 4> pieces;
  pieces.fill(a.sge(0, 1U << 29));
  Request longest(2, IBV_WR_SEND, ends);
  longest.sg_list = pieces.data();
  longest.num_sge = pieces.size();
  ASSERT_EQ(longest.post(a), 0);
  EXPECT_EQ(ends.one_at_a().status, IBV_WC_LOC_LEN_ERR);  // beyond max_msg_sz
}

// The post refuses all of them, and the queue pair continues.
TEST(ImmediateErrors, OfOpcodesThatAKindHasNot) {
  const std::vector<ibv_wr_opcode> reading{IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
  std::vector<ibv_wr_opcode> connected{IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_INV,
                                       IBV_WR_BIND_MW, IBV_WR_LOCAL_INV};
  connected.insert(connected.end(), reading.begin(), reading.end());
  for (const auto& [type, opcodes] : {std::pair{IBV_QPT_UC, reading}, {IBV_QPT_UD, connected}}) {
    TwoEnds ends(Apart::same_device, {.type = type}, {.type = type});
    auto& [a, b] = ends;
    connect(a, b);
    connect(b, a);
    for (const ibv_wr_opcode opcode : opcodes) {
      Request request(1, opcode, ends, a.sge(0, 8));
      EXPECT_EQ(request.post(a), EINVAL) << opcode;
    }
    ibv_wc none;
    EXPECT_EQ(ibv_poll_cq(a.queue, 1, &none), 0);
    EXPECT_EQ(a.state(), IBV_QPS_RTS);
  }
}

TEST(ImmediateErrors, OfAnAddressHandleThatIsGone) {
  TwoEnds ends(Apart::same_device, {.type = IBV_QPT_UD}, {.type = IBV_QPT_UD});
  auto& [a, b] = ends;
  connect(a, b);
  ibv_ah_attr vector = attributes_of(b, {}).ah_attr;
  ibv_ah* to = ibv_create_ah(a.domain, &vector);
  ASSERT_NE(to, nullptr);
  ASSERT_EQ(ibv_destroy_ah(to), 0);
  Request request(1, IBV_WR_SEND, ends, a.sge(0, 8));
  request.wr.ud = {.ah = to, .remote_qpn = b.pair->qp_num, .remote_qkey = kQueueKeyOfEnds};
  EXPECT_EQ(request.post(a), EINVAL);
  EXPECT_EQ(ibv_destroy_ah(to), EINVAL);
  EXPECT_EQ(a.state(), IBV_QPS_RTS);
}

}  // namespace
}  // namespace fairlead::ibverbs
