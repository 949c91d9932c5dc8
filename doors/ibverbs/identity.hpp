#pragma once
// The devices that programs see: those of the native interface under verbs names. Both the verbs calls and the emulated
// /sys files use them.

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

  /// Returns the LID of the host in the InfiniBand personality: the lower bits of its address.
  std::uint16_t lid() const;
};

/// Returns all devices, in the order in which programs see them: as many as configured, spread over the available
/// addresses. Always returns the same vector, which is never destroyed. Empty if this host has no address at all;
/// standard error says so.
const std::vector<Identity>& identities();

}  // namespace fairlead::ibverbs
