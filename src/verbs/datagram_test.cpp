// UD and UC: the guarantees of unreliable services.

#include <algorithm>
#include <array>

#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

class Datagrams : public ::testing::TestWithParam<Road> {};
INSTANTIATE_TEST_SUITE_P(
    , Datagrams, ::testing::ValuesIn(roads({Road::self, Road::shm, Road::udp, Road::faulty, Road::host, Road::hosts})),
    [](const auto& one) { return to_string(one.param); });

PairOptions of(QpType type) {
  PairOptions options;
  options.type = type;
  return options;
}

SendRequest datagram(const Connected& c, const AddressVector& to, std::span<const Sge> sges) {
  return {.id = 3,
          .sges = sges,
          .opcode = SendOpcode::send_imm,
          .flags = send_flags::signaled,
          .imm = 17,
          .to = &to,
          .remote_qpn = c.pb.number(),
          .remote_qkey = kQueueKey};
}

TEST_P(Datagrams, CarryTheirSenderAndFindTheirWayBack) {
  Connected c(GetParam(), of(QpType::ud));
  auto handle = *AddressHandle::create(c.a.domain, {.dgid = c.b.device.gid, .traffic_class = 0x48, .is_global = true});
  for (const std::uint32_t size : {0u, 100u, 2000u, 4096u}) {
    c.a.fill(0, size, size);
    const Sge from = c.a.sge(0, size), to = c.b.sge(0, 5000);
    ASSERT_EQ(c.pb.post_receive({.id = 1, .sges = {&to, 1}}), 0);
    ASSERT_EQ(c.pa.post_send(datagram(c, handle.vector(), {&from, 1})), 0);
    EXPECT_EQ(c.one_at_a().status, WcStatus::success);
    const WorkCompletion received = c.one_at_b();
    EXPECT_EQ(received.status, WcStatus::success);
    EXPECT_EQ(received.byte_len, 40 + size);
    EXPECT_EQ(received.src_qp, c.pa.number());
    EXPECT_EQ(received.imm, 17u);
    EXPECT_EQ(received.wc_flags, wc_flags::grh | wc_flags::with_imm);
    EXPECT_EQ(received.sl, 2) << "an IPv4 header: UCX asks for it here";
    EXPECT_EQ(std::memcmp(c.a.memory.data(), c.b.memory.data() + 40, size), 0);
    const auto sender = address_of_sender(received, std::span(c.b.memory).first<40>());
    ASSERT_TRUE(sender);
    EXPECT_EQ(sender->dgid, c.a.device.gid);
    EXPECT_EQ(sender->traffic_class, 0x48);
  }
}

TEST_P(Datagrams, ThatDoNotFitAreDroppedAndTheReceiveStays) {
  Connected c(GetParam(), of(QpType::ud));
  const AddressVector address{.dgid = c.b.device.gid, .is_global = true};
  const Sge to = c.b.sge(0, 140), big = c.a.sge(0, 101), fitting = c.a.sge(0, 100);
  ASSERT_EQ(c.pb.post_receive({.id = 1, .sges = {&to, 1}}), 0);
  SendRequest wrong_key = datagram(c, address, {&fitting, 1});
  wrong_key.remote_qkey = 1;
  for (const SendRequest& request : {datagram(c, address, {&big, 1}), wrong_key, datagram(c, address, {&fitting, 1})}) {
    const char* drop = request.remote_qkey == 1        ? "qp.dropped_queue_key"
                       : request.sges[0].length == 101 ? "qp.dropped_no_receive"
                                                       : nullptr;
    const std::uint64_t before = drop == nullptr ? 0 : c.counted_at_b(drop);
    ASSERT_EQ(c.pa.post_send(request), 0);
    EXPECT_EQ(c.one_at_a().status, WcStatus::success);
    // Over a reordering network, the next message must not overtake it.
    if (drop != nullptr) {
      ASSERT_TRUE(c.wait_until_counted_at_b(drop, before));
    }
  }
  const WorkCompletion received = c.one_at_b();
  EXPECT_EQ(received.wr_id, 1u);
  EXPECT_EQ(received.byte_len, 140u);
}

TEST_P(Datagrams, LongerThanTheMtuAreLocalErrorsThatOnlyStopSending) {
  Connected c(GetParam(), of(QpType::ud));
  const AddressVector address{.dgid = c.b.device.gid, .is_global = true};
  const Sge from = c.a.sge(0, 4097), small = c.a.sge(0, 10), to = c.a.sge(10'000, 100);
  ASSERT_EQ(c.pa.post_receive({.id = 9, .sges = {&to, 1}}), 0);
  ASSERT_EQ(c.pa.post_send(datagram(c, address, {&from, 1})), 0);
  EXPECT_EQ(c.one_at_a().status, WcStatus::loc_len_err);
  EXPECT_EQ(c.pa.state(), QpState::sqe);
  ASSERT_EQ(c.pa.post_send(datagram(c, address, {&small, 1})), 0);
  EXPECT_EQ(c.one_at_a().status, WcStatus::wr_flush_err);
  // Receiving continues, and the queue pair can return to RTS.
  SendRequest back = datagram(c, {}, {});
  const AddressVector to_a{.dgid = c.a.device.gid, .is_global = true};
  back.to = &to_a;
  back.remote_qpn = c.pa.number();
  ASSERT_EQ(c.pb.post_send(back), 0);
  EXPECT_EQ(c.one_at_a().wr_id, 9u);
  ASSERT_TRUE(c.pa.modify({.state = QpState::rts}, qp_mask::state));
  ASSERT_EQ(c.pa.post_send(datagram(c, address, {&small, 1})), 0);
  EXPECT_EQ(c.one_at_a().status, WcStatus::success);
}

TEST_P(Datagrams, OnlySendsGoByUdAndOnlySendsAndWritesByUc) {
  Connected ud(GetParam(), of(QpType::ud));
  const AddressVector address{.dgid = ud.b.device.gid, .is_global = true};
  for (const SendOpcode opcode : {SendOpcode::write, SendOpcode::read, SendOpcode::fetch_add}) {
    EXPECT_EQ(ud.pa.post_send({.id = 1, .sges = {}, .opcode = opcode, .to = &address}), EINVAL);
  }
  EXPECT_EQ(ud.pa.post_send({.id = 1, .sges = {}}), EINVAL);  // no destination
  Connected uc(GetParam(), of(QpType::uc));
  EXPECT_EQ(uc.pa.post_send({.id = 1, .sges = {}, .opcode = SendOpcode::read}), EINVAL);
}

// Local datagrams keep their order, whatever their sizes. Over UDP, a short one may overtake a long one.
class LocalDatagrams : public ::testing::TestWithParam<Road> {};
INSTANTIATE_TEST_SUITE_P(, LocalDatagrams, ::testing::ValuesIn(roads({Road::self, Road::shm, Road::host, Road::hosts})),
                         [](const auto& one) { return to_string(one.param); });

TEST_P(LocalDatagrams, KeepTheirOrder) {
  constexpr std::uint32_t kCount = 200, kAtATime = 50;
  constexpr std::array<std::uint32_t, 4> kSizes{10, 4096, 300, 2000};
  Connected c(GetParam(), of(QpType::ud));
  const AddressVector address{.dgid = c.b.device.gid, .is_global = true};
  const Sge to = c.b.sge(0, 4136);
  for (std::uint32_t sent = 0; sent < kCount; sent += kAtATime) {
    for (std::uint32_t i = 0; i < kAtATime; ++i) {
      ASSERT_EQ(c.pb.post_receive({.id = i, .sges = {&to, 1}}), 0);
    }
    for (std::uint32_t i = sent; i < sent + kAtATime; ++i) {
      const Sge from = c.a.sge(0, kSizes[i % kSizes.size()]);
      SendRequest request = datagram(c, address, {&from, 1});
      request.imm = i;
      ASSERT_EQ(c.pa.post_send(request), 0);
    }
    for (std::uint32_t i = sent; i < sent + kAtATime; ++i) ASSERT_EQ(c.one_at_b().imm, i);
    for (std::uint32_t i = 0; i < kAtATime; ++i) ASSERT_EQ(c.one_at_a().status, WcStatus::success);
  }
}

TEST_P(Datagrams, UcDropsAndCountsWhatHasNoRight) {
  Connected c(GetParam(), of(QpType::uc));
  const std::uint64_t before = c.counted_at_b("qp.dropped_refused"), unready = c.counted_at_b("qp.dropped_no_receive");
  const Sge from = c.a.sge(0, 8);
  ASSERT_EQ(c.pa.post_send({.id = 1,
                            .sges = {&from, 1},
                            .opcode = SendOpcode::write,
                            .flags = send_flags::signaled,
                            .rkey = c.b.region.rkey() + 1,
                            .remote_addr = c.b.remote(0)}),
            0);
  EXPECT_EQ(c.one_at_a().status, WcStatus::success);
  EXPECT_TRUE(c.wait_until_counted_at_b("qp.dropped_refused", before));
  EXPECT_EQ(c.counted_at_b("qp.dropped_no_receive"), unready);
  EXPECT_EQ(c.pb.state(), QpState::rts);
}

TEST_P(Datagrams, UcDeliversInOrderAndDropsWhatFindsNoReceive) {
  Connected c(GetParam(), of(QpType::uc));
  const Sge to = c.b.sge(1'000'000, 50'000);
  const std::uint64_t before = c.counted_at_b("qp.dropped_no_receive");
  ASSERT_EQ(c.pa.post_send({.id = 1, .sges = {}, .flags = send_flags::signaled}), 0);  // no receive is posted
  EXPECT_EQ(c.one_at_a().status, WcStatus::success);
  ASSERT_TRUE(c.wait_until_counted_at_b("qp.dropped_no_receive", before));
  constexpr std::uint32_t kMessages = 40;
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(c.pb.post_receive({.id = i, .sges = {&to, 1}}), 0);
  }
  c.a.fill(0, 40'000, 2);
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    const Sge from = c.a.sge(0, i % 3 == 0 ? 40'000 : 60);
    ASSERT_EQ(
        c.pa.post_send(
            {.id = i, .sges = {&from, 1}, .opcode = SendOpcode::send_imm, .flags = send_flags::signaled, .imm = i}),
        0);
  }
  const auto received = c.at_b(kMessages);
  ASSERT_EQ(received.size(), kMessages);
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    EXPECT_EQ(received[i].wr_id, i);
    EXPECT_EQ(received[i].imm, i);
    EXPECT_EQ(received[i].byte_len, i % 3 == 0 ? 40'000u : 60u);
  }
  EXPECT_EQ(c.at_a(kMessages).size(), kMessages);
  const Sge from = c.a.sge(0, 40'000);
  ASSERT_EQ(c.pb.post_receive({.id = 99, .sges = {&to, 1}}), 0);
  ASSERT_EQ(c.pa.post_send({.id = 1,
                            .sges = {&from, 1},
                            .opcode = SendOpcode::write_imm,
                            .rkey = c.b.region.rkey(),
                            .remote_addr = c.b.remote(2'000'000)}),
            0);
  EXPECT_EQ(c.one_at_b().opcode, WcOpcode::receive_write_imm);
  EXPECT_EQ(std::memcmp(c.a.memory.data(), c.b.memory.data() + 2'000'000, 40'000), 0);
}

TEST(Addresses, AreCheckedWhenAHandleIsMade) {
  Side side(1, Road::self);
  const auto errno_of = [&](const AddressVector& vector) {
    const auto handle = AddressHandle::create(side.domain, vector);
    return handle ? 0 : handle.error().system_errno;
  };
  const Gid gid = side.device.gid;
  EXPECT_EQ(errno_of({.dgid = gid, .is_global = true}), 0);
  EXPECT_EQ(errno_of({.dgid = gid, .is_global = false}), EINVAL);
  EXPECT_EQ(errno_of({.dgid = {}, .is_global = true}), EINVAL);
  EXPECT_EQ(errno_of({.dgid = gid, .sgid_index = 1, .is_global = true}), EINVAL);
  EXPECT_EQ(errno_of({.dgid = gid, .sgid_index = 3, .is_global = true}), 0);
  EXPECT_EQ(errno_of({.dgid = gid, .is_global = true, .port_num = 2}), EINVAL);
  auto ib = *Context::open(side.device, {.personality = Personality::ib, .engine = {}});
  auto domain = *ProtectionDomain::allocate(ib);
  EXPECT_TRUE(AddressHandle::create(domain, {.dlid = 1}));
  EXPECT_FALSE(AddressHandle::create(domain, {.dlid = 0}));
  EXPECT_EQ(ib.query_port(1)->lid, 1);  // 127.0.0.1
}

}  // namespace
}  // namespace fairlead::verbs
