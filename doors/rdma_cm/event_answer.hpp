#pragma once
// An event as GET_EVENT hands it out.

#include <rdma/rdma_user_cm.h>

#include "doors/rdma_cm/id.hpp"

namespace fairlead::rdma_cm {

/// `id` is whose address the event is about: of a request the id made for it.
/// Of a group that was joined: where to send, and what its queue pair is to be attached to.
rdma_ucm_event_resp answer_of_join(const Id& id, const Membership& membership);
rdma_ucm_event_resp answer_of(const Id& id, const Told& told);

}  // namespace fairlead::rdma_cm
