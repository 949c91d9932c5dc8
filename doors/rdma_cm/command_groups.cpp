// Commands that join and leave multicast groups. A join event comes at once; datagrams come when librdmacm has attached
// the id's queue pair.
#include "doors/rdma_cm/command.hpp"

namespace fairlead::rdma_cm {
namespace {

int join_at(const Command& command, std::uint32_t handle, const std::optional<SocketName>& name, std::uint64_t uid,
            std::uint64_t response) {
  if (!name || !is_group(name->ip)) return EINVAL;
  Service& service = command.service;
  const std::lock_guard guard(service.mutex());
  const auto id = service.find(handle, *command.file);
  if (!id) return ENOENT;
  const State state = id->connection.state();
  const bool is_placed = state == State::bound || state == State::addressed || state == State::routed;
  if (!id->has_device || !is_placed || !id->connection.is_datagram()) return EINVAL;
  const auto membership = service.join(id, name->ip, uid);
  if (!membership) return ENOMEM;
  const int error = command.answer(response, rdma_ucm_create_id_resp{.id = membership->handle});
  if (error != 0) {
    service.leave(membership->handle, *command.file);
    command.file->settle(command.descriptor);
  }
  return error;
}

}  // namespace

int join_ip_group(const Command& command) {
  const auto wanted = command.get<rdma_ucm_join_ip_mcast>();
  return join_at(command, wanted.id, name_in(wanted.addr), wanted.uid, wanted.response);
}

int join_group(const Command& command) {
  const auto wanted = command.get<rdma_ucm_join_mcast>();
  if (wanted.join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) return EINVAL;
  return join_at(command, wanted.id, name_of_size(wanted.addr, wanted.addr_size), wanted.uid, wanted.response);
}

int leave_group(const Command& command) {
  const auto wanted = command.get<rdma_ucm_destroy_id>();
  const std::lock_guard guard(command.service.mutex());
  const auto left = command.service.leave(wanted.id, *command.file);
  if (!left) return ENOENT;
  command.file->settle(command.descriptor);
  return command.answer(wanted.response, rdma_ucm_destroy_id_resp{.events_reported = left->events_reported});
}

}  // namespace fairlead::rdma_cm
