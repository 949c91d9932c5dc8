// Query commands: addresses, GIDs, paths.
#include <arpa/inet.h>
#include <endian.h>

#include <array>

#include "doors/rdma_cm/addressing.hpp"
#include "doors/rdma_cm/command.hpp"

namespace fairlead::rdma_cm {
namespace {

constexpr std::uint8_t kDevicePort = 1;
constexpr std::uint16_t kPkey = 0xffff;
constexpr std::uint8_t kMtu = 5;        // 4096
constexpr std::uint8_t kRate = 16;      // 100 Gb/s
constexpr std::uint8_t kLifeTime = 17;  // 4.096 us << 17
constexpr std::uint8_t kExactly = 2;    // selector: exactly this value
constexpr std::uint8_t kHops = 64;
constexpr std::uint32_t kPathFlags = 1 | 2 | 32;  // GMP, primary, bidirectional
constexpr std::size_t kPathSize = 64;

bool has_path(const Id& id) {
  return id.connection.state() >= State::routed && id.connection.state() != State::listening;
}

std::uint64_t guid_of(const Id& id) {
  const ibverbs::Identity* const identity = find_identity(id.device);
  return identity != nullptr ? htobe64(identity->guid) : 0;
}

std::uint32_t index_of_device(const Id& id) {
  const ibverbs::Identity* const identity = find_identity(id.device);
  return identity != nullptr ? index_of(*identity) : 0;
}

template <typename Storage>
std::span<std::byte> bytes_of(Storage& storage) {
  return std::as_writable_bytes(std::span(&storage, 1));
}

void fill_path(const Id& id, ib_user_path_rec& to) {
  std::memcpy(to.dgid, id.peer.data(), sizeof to.dgid);
  std::memcpy(to.sgid, id.device.data(), sizeof to.sgid);
  to.hop_limit = kHops;
  to.traffic_class = id.tos;
  to.reversible = 1;
  to.numb_path = 1;
  to.pkey = htons(kPkey);
  to.mtu_selector = kExactly;
  to.mtu = kMtu;
  to.rate_selector = kExactly;
  to.rate = kRate;
  to.packet_life_time_selector = kExactly;
  to.packet_life_time = kLifeTime;
}

/// Packs a path record in the format of InfiniBand's subnet administration.
void pack_path(const Id& id, std::span<std::byte, kPathSize> to) {
  std::array<std::uint8_t, kPathSize> record{};
  std::ranges::copy(id.peer, record.begin() + 8);
  std::ranges::copy(id.device, record.begin() + 24);
  record[47] = kHops;
  record[48] = id.tos;
  record[49] = 0x80 | 1;  // reversible, one path
  record[50] = kPkey >> 8;
  record[51] = kPkey & 0xff;
  record[54] = kExactly << 6 | kMtu;
  record[55] = kExactly << 6 | kRate;
  record[56] = kExactly << 6 | kLifeTime;
  std::memcpy(to.data(), record.data(), record.size());
}

rdma_ucm_query_addr_resp device_part(const Id& id) {
  rdma_ucm_query_addr_resp answer{};
  if (!id.has_device) return answer;
  answer.node_guid = guid_of(id);
  answer.port_num = kDevicePort;
  answer.pkey = htons(kPkey);
  answer.ibdev_index = index_of_device(id);
  return answer;
}

int query_address(const Command& command, const Id& id, std::uint64_t to) {
  rdma_ucm_query_addr_resp answer = device_part(id);
  answer.src_size = static_cast<std::uint16_t>(write_name(id.source, id.port_space, bytes_of(answer.src_addr)));
  answer.dst_size = static_cast<std::uint16_t>(write_name(id.target, id.port_space, bytes_of(answer.dst_addr)));
  return command.answer(to, answer);
}

int query_gid(const Command& command, const Id& id, std::uint64_t to) {
  rdma_ucm_query_addr_resp answer = device_part(id);
  SocketName source = id.source, target = id.target;
  source.ip = id.device;
  target.ip = id.peer;
  answer.src_size = static_cast<std::uint16_t>(write_gid_name(source, id.port_space, bytes_of(answer.src_addr)));
  answer.dst_size = static_cast<std::uint16_t>(write_gid_name(target, id.port_space, bytes_of(answer.dst_addr)));
  return command.answer(to, answer);
}

int query_path(const Command& command, const Id& id, std::uint64_t to) {
  constexpr std::size_t kHeadSize = 8;  // of rdma_ucm_query_path_resp, which ends in a flexible array
  std::array<std::byte, kHeadSize + sizeof(ib_path_rec_data)> answer{};
  if (has_path(id) && command.out >= answer.size()) {
    const std::uint32_t paths = 1;
    ib_path_rec_data path{};
    path.flags = kPathFlags;
    pack_path(id, std::as_writable_bytes(std::span(path.path_rec)).first<kPathSize>());
    std::memcpy(answer.data(), &paths, sizeof paths);
    std::memcpy(answer.data() + kHeadSize, &path, sizeof path);
  }
  return command.answer(to, answer);
}

}  // namespace

int query_route(const Command& command) {
  const auto wanted = command.get<rdma_ucm_query>();
  const std::lock_guard guard(command.service.mutex());
  const auto id = command.service.find(wanted.id, *command.file);
  if (!id) return ENOENT;
  rdma_ucm_query_route_resp answer{};
  // The fields have room for IP addresses only.
  if (id->source.family != Family::gid) write_name(id->source, id->port_space, bytes_of(answer.src_addr));
  if (id->target.family != Family::gid) write_name(id->target, id->port_space, bytes_of(answer.dst_addr));
  if (id->has_device) {
    answer.node_guid = guid_of(*id);
    answer.port_num = kDevicePort;
    answer.ibdev_index = index_of_device(*id);
    std::memcpy(answer.ib_route[0].sgid, id->device.data(), id->device.size());
    std::memcpy(answer.ib_route[0].dgid, id->peer.data(), id->peer.size());
    answer.ib_route[0].pkey = htons(kPkey);
    if (has_path(*id)) {
      answer.num_paths = 1;
      fill_path(*id, answer.ib_route[0]);
    }
  }
  return command.answer(wanted.response, answer);
}

int query(const Command& command) {
  const auto wanted = command.get<rdma_ucm_query>();
  const std::lock_guard guard(command.service.mutex());
  const auto id = command.service.find(wanted.id, *command.file);
  if (!id) return ENOENT;
  constexpr std::size_t kPathMin = 8;
  constexpr std::size_t kAddressMin = offsetof(rdma_ucm_query_addr_resp, ibdev_index);
  switch (wanted.option) {
    case RDMA_USER_CM_QUERY_ADDR:
      return command.out < kAddressMin ? ENOSPC : query_address(command, *id, wanted.response);
    case RDMA_USER_CM_QUERY_PATH:
      return command.out < kPathMin ? ENOSPC : query_path(command, *id, wanted.response);
    case RDMA_USER_CM_QUERY_GID:
      return command.out < kAddressMin ? ENOSPC : query_gid(command, *id, wanted.response);
    default:
      return ENOSYS;
  }
}

}  // namespace fairlead::rdma_cm
