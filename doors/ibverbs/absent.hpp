#pragma once
// Features that this device lacks. A program that asks for one gets EOPNOTSUPP, as from a device without it. The log
// tells once per feature what the program asked for and what works instead.

#include <string_view>

#include "doors/ibverbs/abi.hpp"

namespace fairlead::ibverbs {

enum class Absent {
  flow_steering,
  work_queues,
  tag_matching,
  segmentation,
  counters,
  packet_pacing,
  moderation,
  other_memory,
  raw_packets,
  foreign_device,
  foreign_xrc_domain,
  flush,
  management_datagrams,
  pair_types,
  pair_flags,
  pair_attributes,
  posting_calls,
  path_migration,
};

/// Notes it in the log.
void note_absent(Absent feature) noexcept;
/// Does the same, and returns EOPNOTSUPP, which is also in errno.
int tell_absent(Absent feature) noexcept;

/// Fills the calls of absent features.
void set_absent_operations(verbs_context& context);

}  // namespace fairlead::ibverbs
