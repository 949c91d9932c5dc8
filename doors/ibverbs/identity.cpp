#include "doors/ibverbs/identity.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "doors/ibverbs/settings.hpp"

namespace fairlead::ibverbs {
namespace {

std::vector<Identity> find_all() {
  std::vector<Identity> all;
  const auto devices = verbs::devices();
  if (!devices) {
    base::log(LogLevel::error, LogTopic::verbs, {}, fmt::format("no RDMA device: {}", devices.error().message));
    return all;
  }
  const Settings& wanted = settings();
  for (unsigned i = 0; i < wanted.devices; ++i) {
    const verbs::Device& device = (*devices)[i % devices->size()];
    all.push_back({.name = fmt::format("fairlead{}", i),
                   .uverbs = fmt::format("uverbs{}", i),
                   .guid = device.guid + i / devices->size(),
                   .device = device,
                   .personality = wanted.is_infiniband ? verbs::Personality::ib : verbs::Personality::roce});
  }
  return all;
}

}  // namespace

std::uint16_t Identity::lid() const {
  return static_cast<std::uint16_t>(device.gid[14] << 8 | device.gid[15]);
}

const std::vector<Identity>& identities() {
  static const auto* const all = new std::vector<Identity>(find_all());
  return *all;
}

}  // namespace fairlead::ibverbs
