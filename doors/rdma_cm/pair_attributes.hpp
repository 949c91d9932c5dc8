#pragma once
// What a queue pair of an id is to be set to, state by state.

#include <rdma/ib_user_verbs.h>

#include <expected>

#include "doors/rdma_cm/id.hpp"

namespace fairlead::rdma_cm {

/// The way to the peer; InfiniBand personalities are addressed by LID as well.
ib_uverbs_ah_attr way_to_peer(const Id& id);

/// InfiniBand personalities have a LID of the group, too.
ib_uverbs_ah_attr way_to_group(const Id& id, const Ip& group);

/// An errno if the id has no such state yet. `state` is an ibv_qp_state.
std::expected<ib_uverbs_qp_attr, int> pair_attributes(const Id& id, unsigned state);

inline constexpr std::uint32_t kDatagramKey = 0x01234567;  // of the port space UDP

}  // namespace fairlead::rdma_cm
