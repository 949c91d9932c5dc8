#pragma once
// The attributes that the queue pair of an id gets in each state.

#include <rdma/ib_user_verbs.h>

#include <expected>

#include "doors/rdma_cm/id.hpp"

namespace fairlead::rdma_cm {

/// Returns the address of the peer, with its LID in the InfiniBand personality.
ib_uverbs_ah_attr way_to_peer(const Id& id);

/// Returns the address of the group, with its LID in the InfiniBand personality.
ib_uverbs_ah_attr way_to_group(const Id& id, const Ip& group);

/// Returns the attributes, or an errno if the id is not ready for that state. `state` is an ibv_qp_state.
std::expected<ib_uverbs_qp_attr, int> pair_attributes(const Id& id, unsigned state);

inline constexpr std::uint32_t kDatagramKey = 0x01234567;  // of the port space UDP

}  // namespace fairlead::rdma_cm
