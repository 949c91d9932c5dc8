#pragma once
// Who the devices are that programs see: those of the native face under the names that verbs have. The verbs calls and
// the made-up files of /sys both speak of these.

#include <cstdint>
#include <string>
#include <vector>

#include <fairlead/verbs.hpp>

namespace fairlead::ibverbs {

struct Identity {
  std::string name;    // "fairlead0"
  std::string uverbs;  // "uverbs0"
  std::uint64_t guid = 0;
  verbs::Device device;
  verbs::Personality personality = verbs::Personality::roce;

  /// What stands for the host in the InfiniBand personality: the lower bits of its address.
  std::uint16_t lid() const;
};

/// All devices, in the order in which programs see them; as many as were asked for, over the addresses there are. The
/// same vector each time, never destroyed. Empty if this host has no address at all (told on standard error).
const std::vector<Identity>& identities();

}  // namespace fairlead::ibverbs
