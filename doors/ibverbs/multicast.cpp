// Attaches queue pairs to multicast groups.
#include <cstring>

#include "base/log.hpp"
#include "doors/ibverbs/objects.hpp"

namespace fairlead::ibverbs {
namespace {

constexpr std::uint16_t kGroupLidFirst = 0xC000, kGroupLidEnd = 0xFFFF;

verbs::Gid group_of(const ibv_gid& gid) {
  verbs::Gid group;
  std::memcpy(group.data(), gid.raw, group.size());
  return group;
}

/// RoCE has no LIDs, so any value is accepted.
bool is_group_lid(const OpenContext& context, std::uint16_t lid) {
  return context.identity.personality == verbs::Personality::roce || (lid >= kGroupLidFirst && lid < kGroupLidEnd);
}

}  // namespace
}  // namespace fairlead::ibverbs

using namespace fairlead::ibverbs;

extern "C" {

int ibv_attach_mcast(ibv_qp* abi, const ibv_gid* gid, std::uint16_t lid) try {
  const Call call;
  Pair* pair = find(abi);
  if (pair == nullptr || gid == nullptr || !is_group_lid(pair->owner, lid)) return fail(EINVAL);
  const auto done = pair->native->attach_multicast(group_of(*gid), lid);
  if (done) return 0;
  // Log only what the program cannot know: the errno shows its own mistakes, but not what the network lacks.
  const fairlead::Status status = done.error().status;
  if (status != fairlead::Status::invalid && status != fairlead::Status::not_supported)
    fairlead::base::log(fairlead::LogLevel::error, fairlead::LogTopic::verbs, {}, done.error().message);
  return fail(done.error());
} catch (const std::exception&) {
  return thrown();
}

int ibv_detach_mcast(ibv_qp* abi, const ibv_gid* gid, std::uint16_t lid) try {
  const Call call;
  Pair* pair = find(abi);
  if (pair == nullptr || gid == nullptr || !is_group_lid(pair->owner, lid)) return fail(EINVAL);
  const auto done = pair->native->detach_multicast(group_of(*gid));
  return done ? 0 : fail(done.error());
} catch (const std::exception&) {
  return thrown();
}
}
