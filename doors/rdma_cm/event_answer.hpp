#pragma once
// Converts events to the structure that GET_EVENT returns.

#include <rdma/rdma_user_cm.h>

#include "doors/rdma_cm/id.hpp"

namespace fairlead::rdma_cm {

/// Returns the event of a joined group: where to send, and the group to which the queue pair must be attached.
rdma_ucm_event_resp answer_of_join(const Id& id, const Membership& membership);
/// Returns the event `told`. `id` is the one whose addresses it reports: for a request, the id created for it.
rdma_ucm_event_resp answer_of(const Id& id, const Told& told);

}  // namespace fairlead::rdma_cm
