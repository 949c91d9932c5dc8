// Commands that create, move and destroy ids, and that return events.
#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <limits>

#include "doors/rdma_cm/command.hpp"
#include "doors/rdma_cm/descriptor_table.hpp"

namespace fairlead::rdma_cm {
namespace {

/// Returns 0 if there is no such port space.
std::uint8_t pair_type_of(const rdma_ucm_create_id& wanted) {
  switch (wanted.ps) {
    case RDMA_PS_TCP:
      return IBV_QPT_RC;
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB:
      return IBV_QPT_UD;
    case RDMA_PS_IB:
      return wanted.qp_type;
    default:
      return 0;
  }
}

}  // namespace

int create_id(const Command& command) {
  const auto wanted = command.get<rdma_ucm_create_id>();
  const std::uint8_t type = pair_type_of(wanted);
  if (type == 0) return EINVAL;
  const std::lock_guard guard(command.service.mutex());
  const auto id = command.service.make_id(wanted.ps, type);
  if (!id) return ENOMEM;
  id->uid = wanted.uid;
  id->file = command.file;
  const int error = command.answer(wanted.response, rdma_ucm_create_id_resp{.id = id->handle});
  if (error != 0) command.service.destroy(id);
  return error;
}

int destroy_id(const Command& command) {
  const auto wanted = command.get<rdma_ucm_destroy_id>();
  std::unique_lock guard(command.service.mutex());
  const auto id = command.service.find(wanted.id, *command.file);
  if (!id) return ENOENT;
  command.service.destroy(id);
  command.file->settle(command.descriptor);
  const rdma_ucm_destroy_id_resp gone{.events_reported = id->events_reported};
  const std::uint64_t name = id->connection.name();
  guard.unlock();
  command.service.wait_until_rejected(name);
  return command.answer(wanted.response, gone);
}

int get_event(const Command& command) {
  const auto wanted = command.get<rdma_ucm_get_event>();
  for (;;) {
    {
      const std::lock_guard guard(command.service.mutex());
      auto& events = command.file->events;
      if (!events.empty()) {
        const Pending& first = events.front();
        if (const int error = command.answer(wanted.response, first.answer); error != 0) return error;
        ++first.id->events_reported;
        if (first.membership) ++first.membership->events_reported;
        if (first.child) command.service.told_of_request(*first.id, *first.child);
        events.pop_front();
        command.file->settle(command.descriptor);
        return 0;
      }
    }
    // The kernel waits on the socket: it knows whether the file blocks and which signals interrupt the wait.
    char byte = 0;
    const NotCancelled::Except cancelled(command.not_cancelled);
    if (::recv(command.descriptor, &byte, 1, MSG_PEEK) <= 0) return errno != 0 ? errno : EIO;
  }
}

// The program writes the command to the new file; it names the old one.
int migrate_id(const Command& command) {
  const auto wanted = command.get<rdma_ucm_migrate_id>();
  if (wanted.fd > static_cast<unsigned>(std::numeric_limits<int>::max())) return ENOENT;
  const int before_descriptor = static_cast<int>(wanted.fd);
  const auto before = file_of(before_descriptor);
  if (!before) return EINVAL;
  const std::lock_guard guard(command.service.mutex());
  const auto id = command.service.find(wanted.id, *before);
  if (!id) return ENOENT;
  if (before != command.file) {
    std::deque<Pending> staying;
    for (Pending& pending : before->events) {
      if (pending.id != id) {
        staying.push_back(std::move(pending));
        continue;
      }
      if (pending.child) pending.child->file = command.file;
      command.file->push(std::move(pending));
    }
    before->events = std::move(staying);
    before->settle(before_descriptor);
    id->file = command.file;
  }
  return command.answer(wanted.response, rdma_ucm_migrate_resp{.events_reported = id->events_reported});
}

}  // namespace fairlead::rdma_cm
