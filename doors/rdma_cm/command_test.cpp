// The command interface as a program uses it: writes to a device file, answers in memory, events by its descriptor.
// Both ends are ids of this process, on its own device; their messages still go through src/net.
#include "doors/rdma_cm/command.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "doors/ibverbs/identity.hpp"
#include "doors/ibverbs/two_ends_for_tests.hpp"
#include "doors/rdma_cm/addressing.hpp"
#include "doors/rdma_cm/descriptor_table.hpp"

namespace fairlead::rdma_cm {
namespace {

constexpr int kEventAtMost = 20'000;  // ms; only ends a failing test

/// An open device file, closed at the end.
class Device {
 public:
  explicit Device(int flags = O_RDWR | O_CLOEXEC) : descriptor_(Service::of_process().open(flags)) {
    EXPECT_TRUE(ibverbs::are_devices_chosen);
    struct stat status{};
    EXPECT_EQ(::fstat(descriptor_, &status), 0);
    EXPECT_TRUE(note_device_file(descriptor_, status.st_ino));
  }
  ~Device() {
    ::close(descriptor_);
    Service::of_process().end_closed_files();
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int get() const { return descriptor_; }

  int raw_write(const void* bytes, std::size_t size) const {
    const ssize_t written = write_command(file_of(descriptor_), descriptor_, bytes, size);
    EXPECT_TRUE(written < 0 || written == static_cast<ssize_t>(size));
    return written < 0 ? errno : 0;
  }
  template <typename Structure>
  int command(unsigned number, const Structure& structure, std::size_t out = 0) const {
    std::vector<std::byte> bytes(sizeof(rdma_ucm_cmd_hdr) + sizeof structure);
    const rdma_ucm_cmd_hdr header{number, sizeof structure, static_cast<std::uint16_t>(out)};
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, &structure, sizeof structure);
    return raw_write(bytes.data(), bytes.size());
  }

  std::uint32_t create(std::uint64_t uid, unsigned port_space = RDMA_PS_TCP) const {
    rdma_ucm_create_id_resp made{};
    EXPECT_EQ(command(RDMA_USER_CM_CMD_CREATE_ID,
                      rdma_ucm_create_id{.uid = uid,
                                         .response = address_of_answer(made),
                                         .ps = static_cast<std::uint16_t>(port_space),
                                         .qp_type = IBV_QPT_RC,
                                         .reserved = {}},
                      sizeof made),
              0);
    return made.id;
  }
  std::uint32_t destroy(std::uint32_t id) const {
    rdma_ucm_destroy_id_resp gone{};
    EXPECT_EQ(command(RDMA_USER_CM_CMD_DESTROY_ID,
                      rdma_ucm_destroy_id{.response = address_of_answer(gone), .id = id, .reserved = 0}, sizeof gone),
              0);
    return gone.events_reported;
  }
  bool is_readable(int wait = 0) const {
    pollfd poll{.fd = descriptor_, .events = POLLIN, .revents = 0};
    return ::poll(&poll, 1, wait) == 1;
  }
  rdma_ucm_event_resp event() const {
    rdma_ucm_event_resp answer{};
    EXPECT_TRUE(is_readable(kEventAtMost)) << "no event";
    EXPECT_EQ(try_event(answer), 0);
    return answer;
  }
  int try_event(rdma_ucm_event_resp& answer) const {
    return command(RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{.response = address_of_answer(answer)},
                   sizeof answer);
  }
  rdma_ucm_event_resp expect_event(Event wanted, int status = 0) const {
    const rdma_ucm_event_resp answer = event();
    EXPECT_EQ(answer.event, std::to_underlying(wanted));
    EXPECT_EQ(static_cast<int>(answer.status), status);
    return answer;
  }

  template <typename Answer>
  static std::uint64_t address_of_answer(Answer& answer) {
    return reinterpret_cast<std::uintptr_t>(&answer);
  }

  int join(std::uint32_t id, const SocketName& name, std::uint64_t uid, std::uint32_t& membership) const {
    rdma_ucm_create_id_resp made{};
    rdma_ucm_join_mcast wanted{};
    wanted.response = address_of_answer(made);
    wanted.uid = uid;
    wanted.id = id;
    wanted.addr_size = static_cast<std::uint16_t>(write_name(name, 0, as_bytes_of(wanted.addr)));
    const int error = command(RDMA_USER_CM_CMD_JOIN_MCAST, wanted, sizeof made);
    if (error == 0) membership = made.id;
    return error;
  }
  /// Returns the number of reported events; nullopt if there is no such membership.
  std::optional<std::uint32_t> leave(std::uint32_t membership) const {
    rdma_ucm_destroy_id_resp gone{};
    const rdma_ucm_destroy_id wanted{.response = address_of_answer(gone), .id = membership, .reserved = 0};
    if (command(RDMA_USER_CM_CMD_LEAVE_MCAST, wanted, sizeof gone) != 0) return std::nullopt;
    return gone.events_reported;
  }

  int bind(std::uint32_t id, const SocketName& name) const {
    rdma_ucm_bind wanted{};
    wanted.id = id;
    wanted.addr_size = static_cast<std::uint16_t>(write_name(name, 0, as_bytes_of(wanted.addr)));
    return command(RDMA_USER_CM_CMD_BIND, wanted);
  }
  int listen(std::uint32_t id, std::uint32_t backlog = 0) const {
    return command(RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{.id = id, .backlog = backlog});
  }
  void route(std::uint32_t id, const SocketName& target) const {
    rdma_ucm_resolve_addr wanted{};
    wanted.id = id;
    wanted.dst_size = static_cast<std::uint16_t>(write_name(target, 0, as_bytes_of(wanted.dst_addr)));
    EXPECT_EQ(command(RDMA_USER_CM_CMD_RESOLVE_ADDR, wanted), 0);
    expect_event(Event::addr_resolved);
    EXPECT_EQ(command(RDMA_USER_CM_CMD_RESOLVE_ROUTE, rdma_ucm_resolve_route{.id = id, .timeout_ms = 1}), 0);
    expect_event(Event::route_resolved);
  }
  int connect(std::uint32_t id, std::string_view words = {}) const {
    rdma_ucm_connect wanted{};
    wanted.id = id;
    wanted.conn_param = param(0x42, words);
    return command(RDMA_USER_CM_CMD_CONNECT, wanted);
  }
  int accept(std::uint32_t id, std::uint64_t uid, bool has_param = true, std::string_view words = {}) const {
    rdma_ucm_accept wanted{};
    wanted.id = id;
    wanted.uid = uid;
    if (has_param) wanted.conn_param = param(0x43, words);
    return command(RDMA_USER_CM_CMD_ACCEPT, wanted);
  }
  int disconnect(std::uint32_t id) const { return command(RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{.id = id}); }
  struct Names {
    SocketName own, peer;
  };
  Names names_of(std::uint32_t id) const {
    rdma_ucm_query_addr_resp answer{};
    EXPECT_EQ(
        command(RDMA_USER_CM_CMD_QUERY,
                rdma_ucm_query{.response = address_of_answer(answer), .id = id, .option = RDMA_USER_CM_QUERY_ADDR},
                sizeof answer),
        0);
    return {.own = read_name(std::as_bytes(std::span(&answer.src_addr, 1))).value_or(SocketName{}),
            .peer = read_name(std::as_bytes(std::span(&answer.dst_addr, 1))).value_or(SocketName{})};
  }
  std::uint16_t port_of(std::uint32_t id) const { return names_of(id).own.port; }
  std::expected<ib_uverbs_qp_attr, int> attributes(std::uint32_t id, unsigned state) const {
    ib_uverbs_qp_attr answer{};
    const int error = command(RDMA_USER_CM_CMD_INIT_QP_ATTR,
                              rdma_ucm_init_qp_attr{.response = address_of_answer(answer), .id = id, .qp_state = state},
                              sizeof answer);
    if (error != 0) return std::unexpected(error);
    return answer;
  }

 private:
  static rdma_ucm_conn_param param(std::uint32_t qp_num, std::string_view words) {
    rdma_ucm_conn_param param{};
    param.qp_num = qp_num;
    param.responder_resources = param.initiator_depth = 4;
    param.retry_count = param.rnr_retry_count = 7;
    param.valid = 1;
    param.private_data_len = static_cast<std::uint8_t>(words.size());
    std::ranges::copy(words, param.private_data);
    return param;
  }
  template <typename Storage>
  static std::span<std::byte> as_bytes_of(Storage& storage) {
    return std::as_writable_bytes(std::span(&storage, 1));
  }

  int descriptor_;
};

SocketName local(std::uint16_t port) {
  return {.family = Family::v4, .ip = *ip_of("127.0.0.1"), .port = port};
}

std::uint32_t listener_on(const Device& device, std::uint64_t uid, unsigned port_space = RDMA_PS_TCP) {
  const std::uint32_t id = device.create(uid, port_space);
  EXPECT_EQ(device.bind(id, local(0)), 0);
  EXPECT_EQ(device.listen(id), 0);
  return id;
}

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

TEST(ManagerCommand, FindsNobodyAndIsRejected) {
  Device server, client;
  const std::uint32_t gone = listener_on(server, 1);
  const std::uint16_t port = server.port_of(gone);
  server.destroy(gone);
  const std::uint32_t active = client.create(2);
  client.route(active, local(port));
  ASSERT_EQ(client.connect(active), 0);
  client.expect_event(Event::rejected, 8);
  // Listens at the port in another port space.
  const std::uint32_t other = server.create(1, RDMA_PS_IB);
  ASSERT_EQ(server.bind(other, local(port)), 0);
  ASSERT_EQ(server.listen(other), 0);
  const std::uint32_t again = client.create(3);
  client.route(again, local(port));
  ASSERT_EQ(client.connect(again), 0);
  client.expect_event(Event::rejected, 8);
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

void wait_until_backlog_was_full_since(std::uint64_t before) {
  for (int i = 0; i < kEventAtMost && Service::of_process().counters().backlog_full == before; ++i) ::usleep(1000);
  EXPECT_GT(Service::of_process().counters().backlog_full, before);
}

TEST(ManagerCommand, AsksRequestersBeyondTheBacklogToComeAgain) {
  Device server, client;
  const std::uint32_t listener = server.create(1);
  ASSERT_EQ(server.bind(listener, local(0)), 0);
  ASSERT_EQ(server.listen(listener, 1), 0);
  const std::uint64_t before = Service::of_process().counters().backlog_full;
  constexpr unsigned kClients = 3;
  for (unsigned i = 0; i < kClients; ++i) {
    const std::uint32_t active = client.create(2 + i);
    client.route(active, local(server.port_of(listener)));
    ASSERT_EQ(client.connect(active), 0);
  }
  wait_until_backlog_was_full_since(before);
  for (unsigned i = 0; i < kClients; ++i) {
    const rdma_ucm_event_resp request = server.expect_event(Event::connect_request);
    ASSERT_EQ(
        server.command(
            RDMA_USER_CM_CMD_REJECT,
            rdma_ucm_reject{.id = request.id, .private_data_len = 0, .reason = 0, .reserved = {}, .private_data = {}}),
        0);
    client.expect_event(Event::rejected, 28);
  }
}

TEST(ManagerCommand, LetsOneHostFillHalfOfABacklog) {
  Device server, client;
  const std::uint32_t listener = server.create(0);  // the program chooses the ids' uid
  ASSERT_EQ(server.bind(listener, local(0)), 0);
  ASSERT_EQ(server.listen(listener, 4), 0);
  const std::uint64_t before = Service::of_process().counters().backlog_full;
  for (unsigned i = 0; i < 3; ++i) {
    const std::uint32_t active = client.create(2 + i);
    client.route(active, local(server.port_of(listener)));
    ASSERT_EQ(client.connect(active), 0);
  }
  wait_until_backlog_was_full_since(before);  // the third one, although the backlog is four
  for (unsigned i = 0; i < 3; ++i) server.expect_event(Event::connect_request);
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

// The wrapped calls would not recognise this descriptor, so open() must fail.
TEST(DeviceFile, HasANumberThatItsTableKnows) {
  EXPECT_FALSE(note_device_file(65536, 1));
  EXPECT_FALSE(note_device_file(-1, 1));
}

TEST(DeviceFile, WakesItsServiceOnlyByItsLastClose) {
  int descriptor = -1;
  const auto file = EventFile::open(O_RDWR, descriptor);
  ASSERT_TRUE(file);
  const base::FileDescriptor poll(::epoll_create1(EPOLL_CLOEXEC));
  base::FileDescriptor copy(::dup(descriptor));
  file->watch_close(poll.get());
  epoll_event event{};
  ASSERT_EQ(::send(descriptor, "", 1, 0), 1);  // bypasses write()
  EXPECT_EQ(::epoll_wait(poll.get(), &event, 1, 0), 0);
  ::close(descriptor);
  EXPECT_EQ(::epoll_wait(poll.get(), &event, 1, 0), 0);
  copy = {};
  EXPECT_EQ(::epoll_wait(poll.get(), &event, 1, 0), 1);
  EXPECT_EQ(event.data.fd, file->far_end());
}

// A socket that accepts everything and never answers: such a peer could hold a message for ever.
TEST(ManagerCarrier, LosesPatienceWithAPeerThatSaysNothing) {
  const base::FileDescriptor wake(::eventfd(0, EFD_CLOEXEC));
  Carrier carrier(wake.get(), std::chrono::milliseconds(20));
  const base::FileDescriptor mute(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {::htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof name;
  ASSERT_EQ(::bind(mute.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
  ASSERT_EQ(::getsockname(mute.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
  const Ip ip = *ip_of("127.0.0.1");
  ASSERT_EQ(carrier.send(ip, listener_address(ip, ::ntohs(name.sin_port)), {}, 7), Status::ok);
  pollfd poll{.fd = wake.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&poll, 1, kEventAtMost), 1);
  const auto outcomes = carrier.collect().outcomes;
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].tag, 7U);
  EXPECT_EQ(outcomes[0].status, Status::timed_out);
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
