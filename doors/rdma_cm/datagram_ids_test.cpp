// Ids of datagram queue pairs, as a program uses them: one request resolves a peer, and groups are joined and left.

#include <cstring>
#include <memory>

#include "doors/ibverbs/identity.hpp"
#include "doors/rdma_cm/device_for_tests.hpp"

namespace fairlead::rdma_cm {
namespace {

TEST(ManagerCommand, ResolvesDatagramPeersByOneRequest) {
  Device server, client;
  const std::uint32_t listener = listener_on(server, 1, RDMA_PS_UDP);
  const std::uint32_t active = client.create(2, RDMA_PS_UDP);
  client.route(active, local(server.port_of(listener)));
  EXPECT_EQ(client.attributes(active, IBV_QPS_INIT)->qkey, 0x01234567U);
  ASSERT_EQ(client.connect(active, "hello"), 0);
  const rdma_ucm_event_resp request = server.expect_event(Event::connect_request);
  EXPECT_STREQ(reinterpret_cast<const char*>(request.param.ud.private_data), "hello");
  ASSERT_EQ(server.accept(request.id, 3), 0);
  const rdma_ucm_event_resp answer = client.expect_event(Event::established);
  EXPECT_EQ(answer.param.ud.qp_num, 0x43U);
  EXPECT_EQ(answer.param.ud.qkey, 0x01234567U);
  EXPECT_EQ(answer.param.ud.ah_attr.is_global, 1);
  EXPECT_EQ(std::memcmp(answer.param.ud.ah_attr.grh.dgid, ibverbs::identities().front().device.gid.data(), 16), 0);
}

SocketName group(const char* ip) {
  return {.family = Family::v4, .ip = *ip_of(ip), .port = 0};
}

TEST(ManagerCommand, JoinsAndLeavesGroups) {
  Device device;
  const std::uint32_t id = device.create(1, RDMA_PS_UDP);
  std::uint32_t membership = 99;
  EXPECT_EQ(device.join(id, group("239.1.2.3"), 7, membership), EINVAL) << "it has no device yet";
  ASSERT_EQ(device.bind(id, local(0)), 0);
  EXPECT_EQ(device.join(id, group("10.0.0.1"), 7, membership), EINVAL) << "no group";
  ASSERT_EQ(device.join(id, group("239.1.2.3"), 7, membership), 0);
  const rdma_ucm_event_resp joined = device.expect_event(Event::multicast_join);
  EXPECT_EQ(joined.uid, 7U);
  EXPECT_EQ(joined.id, membership);
  EXPECT_EQ(joined.param.ud.qp_num, 0xFFFFFFU);
  EXPECT_EQ(joined.param.ud.qkey, 0x01234567U);
  EXPECT_EQ(joined.param.ud.ah_attr.is_global, 1);
  EXPECT_EQ(std::memcmp(joined.param.ud.ah_attr.grh.dgid, group("239.1.2.3").ip.data(), 16), 0);
  EXPECT_EQ(device.leave(membership), 1U) << "events of it that the program was told";
  EXPECT_EQ(device.leave(membership), std::nullopt);
  ASSERT_EQ(device.join(id, group("239.1.2.4"), 8, membership), 0);
  EXPECT_EQ(device.leave(membership), 0U);
  EXPECT_FALSE(device.is_readable()) << "what was not told is gone";
  for (std::size_t i = 0; i < Id::kGroupsMax; ++i) ASSERT_EQ(device.join(id, group("239.1.2.5"), 9, membership), 0);
  EXPECT_EQ(device.join(id, group("239.1.2.5"), 9, membership), ENOMEM);
  Device other;
  EXPECT_EQ(other.leave(membership), std::nullopt) << "of another file";
  EXPECT_EQ(device.destroy(id), 1U);
  EXPECT_FALSE(device.is_readable());
  const std::uint32_t connected = device.create(2);
  ASSERT_EQ(device.bind(connected, local(0)), 0);
  EXPECT_EQ(device.join(connected, group("239.1.2.3"), 7, membership), EINVAL) << "no datagrams";
}

}  // namespace
}  // namespace fairlead::rdma_cm
