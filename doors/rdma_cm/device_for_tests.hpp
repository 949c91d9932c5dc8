#pragma once
// A device file of the connection manager as a program uses it: writes to it, answers in memory, events by its
// descriptor. All ids are ids of this process, on its own device; their messages still go through src/net.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "doors/ibverbs/two_ends_for_tests.hpp"
#include "doors/rdma_cm/addressing.hpp"
#include "doors/rdma_cm/command.hpp"
#include "doors/rdma_cm/descriptor_table.hpp"

namespace fairlead::rdma_cm {

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

inline SocketName local(std::uint16_t port) {
  return {.family = Family::v4, .ip = *ip_of("127.0.0.1"), .port = port};
}

inline std::uint32_t listener_on(const Device& device, std::uint64_t uid, unsigned port_space = RDMA_PS_TCP) {
  const std::uint32_t id = device.create(uid, port_space);
  EXPECT_EQ(device.bind(id, local(0)), 0);
  EXPECT_EQ(device.listen(id), 0);
  return id;
}

}  // namespace fairlead::rdma_cm
