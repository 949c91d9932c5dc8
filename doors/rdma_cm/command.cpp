#include "doors/rdma_cm/command.hpp"

#include <array>
#include <cerrno>

namespace fairlead::rdma_cm {
namespace {

struct Row {
  int (*run)(const Command& command) = nullptr;  // null: ENOSYS, as from a kernel without the command
  std::size_t in_min = 0;                        // bytes
  std::size_t out_min = 0;                       // bytes; smaller: ENOSPC
};

constexpr std::size_t kIndexedRoute = offsetof(rdma_ucm_query_route_resp, ibdev_index);
constexpr std::size_t kEventMin = offsetof(rdma_ucm_event_resp, reserved);

/// By command number.
constexpr std::array<Row, 23> kRows{{
    {create_id, sizeof(rdma_ucm_create_id), sizeof(rdma_ucm_create_id_resp)},
    {destroy_id, sizeof(rdma_ucm_destroy_id), sizeof(rdma_ucm_destroy_id_resp)},
    {bind_ip, sizeof(rdma_ucm_bind_ip) - 4, 0},
    {resolve_ip, sizeof(rdma_ucm_resolve_ip), 0},
    {resolve_route, sizeof(rdma_ucm_resolve_route), 0},
    {query_route, sizeof(rdma_ucm_query), kIndexedRoute},
    {connect, offsetof(rdma_ucm_connect, ece), 0},
    {listen, sizeof(rdma_ucm_listen), 0},
    {accept, offsetof(rdma_ucm_accept, ece), 0},
    {reject, sizeof(rdma_ucm_reject), 0},
    {disconnect, sizeof(rdma_ucm_disconnect), 0},
    {init_pair_attributes, sizeof(rdma_ucm_init_qp_attr), sizeof(ib_uverbs_qp_attr)},
    {get_event, sizeof(rdma_ucm_get_event), kEventMin},
    {},  // GET_OPTION: no kernel implements it
    {set_option, sizeof(rdma_ucm_set_option), 0},
    {notify, sizeof(rdma_ucm_notify), 0},
    {join_ip_group, sizeof(rdma_ucm_join_ip_mcast) - 4, sizeof(rdma_ucm_create_id_resp)},
    {leave_group, sizeof(rdma_ucm_destroy_id), sizeof(rdma_ucm_destroy_id_resp)},
    {migrate_id, sizeof(rdma_ucm_migrate_id), sizeof(rdma_ucm_migrate_resp)},
    {query, sizeof(rdma_ucm_query), 0},
    {bind, sizeof(rdma_ucm_bind), 0},
    {resolve_address, sizeof(rdma_ucm_resolve_addr), 0},
    {join_group, sizeof(rdma_ucm_join_mcast), sizeof(rdma_ucm_create_id_resp)},
}};

constexpr std::size_t kCommandSizeMax = 1024;

int run_command(const std::shared_ptr<EventFile>& file, int descriptor, const void* bytes, std::size_t size) {
  rdma_ucm_cmd_hdr header{};
  if (size < sizeof header) return EINVAL;
  const auto from = reinterpret_cast<std::uintptr_t>(bytes);
  if (!read_user(from, std::as_writable_bytes(std::span(&header, 1)))) return EFAULT;
  if (header.cmd >= kRows.size() || header.in + sizeof header > size) return EINVAL;
  const Row& row = kRows[header.cmd];
  if (row.run == nullptr) return ENOSYS;
  if (header.out < row.out_min) return ENOSPC;
  if (header.in < row.in_min) return EINVAL;
  std::array<std::byte, kCommandSizeMax> in;
  const auto used = std::span(in).first(std::min<std::size_t>(header.in, in.size()));
  if (!read_user(from + sizeof header, used)) return EFAULT;
  const NotCancelled not_cancelled;
  return row.run({.service = Service::of_process(),
                  .not_cancelled = not_cancelled,
                  .file = file,
                  .descriptor = descriptor,
                  .in = used,
                  .out = header.out});
}

}  // namespace

ssize_t write_command(const std::shared_ptr<EventFile>& file, int descriptor, const void* bytes, std::size_t size) {
  const int errno_before = errno;
  const int error = run_command(file, descriptor, bytes, size);
  errno = error != 0 ? error : errno_before;
  return error != 0 ? -1 : static_cast<ssize_t>(size);
}

}  // namespace fairlead::rdma_cm
