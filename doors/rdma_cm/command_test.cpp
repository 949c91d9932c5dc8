// The command interface as a program uses it: writes to a device file, answers in memory, events by its descriptor.
#include "doors/rdma_cm/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_user_cm.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fairlead/log.hpp>

#include "doors/ibverbs/identity.hpp"
#include "doors/rdma_cm/device_for_tests.hpp"

namespace fairlead::rdma_cm {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;

TEST(ManagerCommand, ConnectsTalksAndDisconnects) {
  Device server, client;
  const std::uint32_t listener = listener_on(server, 1);
  const std::uint32_t active = client.create(2);
  client.route(active, local(server.port_of(listener)));
  ASSERT_EQ(client.connect(active, "hello"), 0);
  const rdma_ucm_event_resp request = server.expect_event(Event::connect_request);
  EXPECT_EQ(request.uid, 1U);
  EXPECT_EQ(request.param.conn.qp_num, 0x42U);
  EXPECT_STREQ(reinterpret_cast<const char*>(request.param.conn.private_data), "hello");
  const std::uint32_t passive = request.id;
  const auto before = server.attributes(passive, IBV_QPS_RTR);
  ASSERT_TRUE(before.has_value()) << before.error();
  EXPECT_EQ(before->dest_qp_num, 0x42U);
  ASSERT_EQ(server.accept(passive, 3, true, "welcome"), 0);
  const rdma_ucm_event_resp response = client.expect_event(Event::connect_response);
  EXPECT_EQ(response.param.conn.qp_num, 0x43U);
  const auto to_send = client.attributes(active, IBV_QPS_RTS);
  ASSERT_TRUE(to_send.has_value()) << to_send.error();
  EXPECT_EQ(to_send->sq_psn, server.attributes(passive, IBV_QPS_RTR)->rq_psn);
  ASSERT_EQ(client.accept(active, 0, false), 0);
  EXPECT_EQ(server.expect_event(Event::established).uid, 3U);
  ASSERT_EQ(client.disconnect(active), 0);
  server.expect_event(Event::disconnected);
  EXPECT_FALSE(client.is_readable());  // before the other side agrees
  ASSERT_EQ(server.disconnect(passive), 0);
  client.expect_event(Event::disconnected);
  client.expect_event(Event::timewait_exit);
  EXPECT_EQ(client.destroy(active), 5U);
  EXPECT_EQ(server.destroy(listener), 1U);
}

/// Connects `client` to `server`. Returns the ids of both.
std::pair<std::uint32_t, std::uint32_t> connect_ids(const Device& client, const Device& server) {
  const std::uint32_t listener = listener_on(server, 1), active = client.create(2);
  client.route(active, local(server.port_of(listener)));
  EXPECT_EQ(client.connect(active), 0);
  const std::uint32_t passive = server.expect_event(Event::connect_request).id;
  EXPECT_EQ(server.accept(passive, 3), 0);
  client.expect_event(Event::connect_response);
  EXPECT_EQ(client.accept(active, 0, false), 0);
  server.expect_event(Event::established);
  return {active, passive};
}

TEST(ManagerCommand, NamesThePeerAsThePeerNamesItself) {
  Device server, client;
  const auto [active, passive] = connect_ids(client, server);
  EXPECT_EQ(client.names_of(active).own.ip, *ip_of("127.0.0.1"));
  EXPECT_EQ(server.names_of(passive).peer, client.names_of(active).own);
  EXPECT_EQ(server.names_of(passive).own, client.names_of(active).peer);
}

std::uint64_t guid_of(const Device& device, std::uint32_t id) {
  rdma_ucm_query_route_resp route{};
  EXPECT_EQ(
      device.command(RDMA_USER_CM_CMD_QUERY_ROUTE,
                     rdma_ucm_query{.response = Device::address_of_answer(route), .id = id, .option = 0}, sizeof route),
      0);
  return route.node_guid;
}

// libfabric binds an id to each address of the host. It publishes those that give the id a device.
TEST(ManagerCommand, GivesAnIdTheDeviceOfItsAddress) {
  const Device device;
  const auto bound_to = [&](const Ip& ip, unsigned port_space = RDMA_PS_TCP) {
    const std::uint32_t id = device.create(1, port_space);
    EXPECT_EQ(device.bind(id, {.family = is_v4(ip) ? Family::v4 : Family::v6, .ip = ip, .port = 0}), 0) << to_text(ip);
    return guid_of(device, id);
  };
  for (const ibverbs::Identity& each : ibverbs::identities()) {
    if (!is_loopback(each.device.gid)) EXPECT_NE(bound_to(each.device.gid), 0U) << each.name;
  }
  EXPECT_EQ(bound_to(*ip_of("0.0.0.0")), 0U);
  EXPECT_NE(bound_to(*ip_of("127.0.0.1"), RDMA_PS_UDP), 0U) << "rsockets create their queue pair now";
  for (const char* text : {"127.0.0.1", "127.0.0.2"}) {
    const Ip ip = *ip_of(text);
    EXPECT_EQ(bound_to(ip) != 0, ibverbs::identities().front().device.gid == ip) << text;
  }
}

int resolve(const Device& device, std::uint32_t id, const SocketName& target) {
  rdma_ucm_resolve_addr wanted{};
  wanted.id = id;
  wanted.dst_size =
      static_cast<std::uint16_t>(write_name(target, 0, std::as_writable_bytes(std::span(&wanted.dst_addr, 1))));
  return device.command(RDMA_USER_CM_CMD_RESOLVE_ADDR, wanted);
}

// The devices of this test have IPv4 addresses. Without an IPv6 route the error is the kernel's.
TEST(ManagerCommand, NamesTheReasonWhenNoDeviceLeadsToAnAddress) {
  if (!is_v4(ibverbs::identities().front().device.gid)) GTEST_SKIP() << "the first device has an IPv6 address";
  std::mutex mutex;
  std::vector<std::string> lines;
  set_log_handler([&](const LogLine& line) {
    const std::lock_guard guard(mutex);
    lines.emplace_back(line.text);
  });
  const Device device;
  const SocketName target{.family = Family::v6, .ip = *ip_of("2001:db8::7"), .port = 1};
  const std::uint32_t unbound = device.create(1), bound = device.create(2);
  EXPECT_EQ(resolve(device, unbound, target), 0);
  EXPECT_EQ(device.event().event, std::to_underlying(Event::addr_error));
  const Ip own = ibverbs::identities().front().device.gid;
  ASSERT_EQ(device.bind(bound, {.family = Family::v4, .ip = own, .port = 0}), 0);
  EXPECT_EQ(resolve(device, bound, target), 0);
  device.expect_event(Event::addr_error, -ENETUNREACH);
  set_log_handler({});
  const std::lock_guard guard(mutex);
  EXPECT_THAT(lines, Contains(AnyOf(HasSubstr("no device has an IPv6 address, which 2001:db8::7 needs: `fairlead run"),
                                    HasSubstr("no route to 2001:db8::7"))));
  EXPECT_THAT(lines, Contains(HasSubstr("are of different families: bind the id")));
}

// A peer that was stopped or cut off until the other side gave it up continues as if nothing had happened.
TEST(ManagerCommand, HearsThatItsPeerHasGivenItUpMeanwhile) {
  Device server, client;
  const auto [active, passive] = connect_ids(client, server);
  Service& service = Service::of_process();
  const std::shared_ptr<EventFile> file = file_of(server.get());
  {
    const std::lock_guard guard(service.mutex());
    const std::shared_ptr<Id> id = service.find(passive, *file);
    ASSERT_NE(id, nullptr);
    id->connection.lose(Status::silent, Instant::clock::now());
  }
  ASSERT_TRUE(client.is_readable(kEventAtMost)) << "nobody told it";
  client.expect_event(Event::disconnected);
  EXPECT_EQ(client.disconnect(active), 0);
}

TEST(ManagerCommand, RefusesWhatTheKernelRefuses) {
  Device device(O_RDWR | O_NONBLOCK);
  struct {
    int error;
    rdma_ucm_cmd_hdr header;
    std::size_t size;  // of the write
  } const rows[] = {
      {EINVAL, {RDMA_USER_CM_CMD_LISTEN, 0, 0}, 4},
      {EINVAL, {RDMA_USER_CM_CMD_LISTEN, 64, 0}, 8},  // more announced than written
      {EINVAL, {RDMA_USER_CM_CMD_LISTEN, 4, 0}, 12},  // less than the structure
      {EINVAL, {RDMA_USER_CM_CMD_JOIN_MCAST + 1, 0, 0}, 8},
      {ENOSYS, {RDMA_USER_CM_CMD_GET_OPTION, 0, 0}, 8},
      {ENOSPC, {RDMA_USER_CM_CMD_JOIN_MCAST, 0, 0}, 8},
      {ENOENT, {RDMA_USER_CM_CMD_LEAVE_MCAST, 16, 4}, 24},
      {ENOSPC, {RDMA_USER_CM_CMD_CREATE_ID, sizeof(rdma_ucm_create_id), 3}, 8 + sizeof(rdma_ucm_create_id)},
      {ENOSPC, {RDMA_USER_CM_CMD_GET_EVENT, 8, 100}, 16},
      {ENOENT, {RDMA_USER_CM_CMD_LISTEN, 8, 0}, 16},  // id 0 does not exist
  };
  for (const auto& row : rows) {
    std::array<std::byte, 128> bytes{};
    std::memcpy(bytes.data(), &row.header, sizeof row.header);
    EXPECT_EQ(device.raw_write(bytes.data(), row.size), row.error) << "command " << row.header.cmd;
  }
  EXPECT_EQ(device.raw_write(nullptr, 8), EFAULT);
  EXPECT_EQ(
      device.command(RDMA_USER_CM_CMD_CREATE_ID,
                     rdma_ucm_create_id{.uid = 1, .response = 8, .ps = RDMA_PS_TCP, .qp_type = 2, .reserved = {}}, 4),
      EFAULT);
  EXPECT_EQ(device.command(RDMA_USER_CM_CMD_CREATE_ID,
                           rdma_ucm_create_id{.uid = 1, .response = 8, .ps = 7, .qp_type = 2, .reserved = {}}, 4),
            EINVAL);
  rdma_ucm_event_resp answer{};
  EXPECT_EQ(device.try_event(answer), EAGAIN);
  const std::uint32_t id = device.create(1);
  EXPECT_EQ(device.connect(id), EINVAL);
  EXPECT_EQ(device.bind(id, {.family = Family::v4, .ip = *ip_of("203.0.113.77"), .port = 0}), EADDRNOTAVAIL);
  Device other;
  EXPECT_EQ(other.listen(id), ENOENT);  // an id belongs to its file
}

/// Expects that nobody listens at the port. An engine there may end at this very moment, the former owner's or one of
/// another process; then the request is made again.
void expect_nobody(Device& client, std::uint64_t first_id, std::uint16_t port) {
  constexpr int kNobodyListens = 8, kIsGone = 28;
  constexpr std::uint64_t kTries = 5;
  int status = kIsGone;
  for (std::uint64_t i = 0; i < kTries && status == kIsGone; ++i) {
    const std::uint32_t active = client.create(first_id + i);
    client.route(active, local(port));
    ASSERT_EQ(client.connect(active), 0);
    const rdma_ucm_event_resp told = client.event();
    ASSERT_EQ(told.event, std::to_underlying(Event::rejected));
    status = told.status;
  }
  EXPECT_EQ(status, kNobodyListens);
}

TEST(ManagerCommand, FindsNobodyAndIsRejected) {
  Device server, client;
  const std::uint32_t gone = listener_on(server, 1);
  const std::uint16_t port = server.port_of(gone);
  server.destroy(gone);
  expect_nobody(client, 2, port);
  // Listens at the port in another port space.
  const std::uint32_t other = server.create(1, RDMA_PS_IB);
  ASSERT_EQ(server.bind(other, local(port)), 0);
  ASSERT_EQ(server.listen(other), 0);
  expect_nobody(client, 10, port);
}

TEST(ManagerCommand, GivesAPortToOneListener) {
  Device device;
  const std::uint32_t first = listener_on(device, 1);
  const std::uint16_t port = device.port_of(first);
  const std::uint32_t second = device.create(2);
  EXPECT_EQ(device.bind(second, local(port)), EADDRINUSE);
  device.destroy(first);
  EXPECT_EQ(device.bind(second, local(port)), 0);
  EXPECT_EQ(device.listen(second), 0);
}

TEST(ManagerCommand, ClosingTheFileEndsItsIdsAndFreesItsPorts) {
  Device client;
  const std::uint32_t active = client.create(2);
  std::uint16_t port = 0;
  {
    Device server;
    const std::uint32_t listener = listener_on(server, 1);
    port = server.port_of(listener);
    client.route(active, local(port));
    ASSERT_EQ(client.connect(active), 0);
    const std::uint32_t passive = server.expect_event(Event::connect_request).id;
    ASSERT_EQ(server.accept(passive, 3), 0);
    client.expect_event(Event::connect_response);
    ASSERT_EQ(client.accept(active, 0, false), 0);
    server.expect_event(Event::established);
  }
  client.expect_event(Event::disconnected);
  const std::uint32_t next = client.create(4);
  EXPECT_EQ(client.bind(next, local(port)), 0);
}

TEST(ManagerCommand, KnowsFromTheKernelThatNobodyHasAPort) {
  const Ip& ip = ibverbs::identities().front().device.gid;
  std::uint16_t port = 0;
  {
    Device server;
    const std::uint32_t listener = listener_on(server, 1);
    port = server.port_of(listener);
    EXPECT_FALSE(is_nobody_at(ip, port));
  }
  EXPECT_TRUE(is_nobody_at(ip, port));
  EXPECT_FALSE(is_nobody_at(*ip_of("192.0.2.99"), port));  // not an address of our devices: not asked
}

TEST(ManagerCommand, MovesAnIdWithItsEventsToAnotherFile) {
  Device first, second;
  const std::uint32_t id = first.create(1);
  rdma_ucm_resolve_addr wanted{};
  wanted.id = id;
  wanted.dst_size =
      static_cast<std::uint16_t>(write_name(local(1), 0, std::as_writable_bytes(std::span(&wanted.dst_addr, 1))));
  ASSERT_EQ(first.command(RDMA_USER_CM_CMD_RESOLVE_ADDR, wanted), 0);
  EXPECT_TRUE(first.is_readable());
  rdma_ucm_migrate_resp moved{};
  ASSERT_EQ(second.command(RDMA_USER_CM_CMD_MIGRATE_ID,
                           rdma_ucm_migrate_id{.response = Device::address_of_answer(moved),
                                               .id = id,
                                               .fd = static_cast<std::uint32_t>(first.get())},
                           sizeof moved),
            0);
  EXPECT_FALSE(first.is_readable());
  second.expect_event(Event::addr_resolved);
  EXPECT_EQ(first.listen(id), ENOENT);
  EXPECT_EQ(second.destroy(id), 1U);
}

}  // namespace
}  // namespace fairlead::rdma_cm
