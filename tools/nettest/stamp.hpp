#pragma once
// The header of every message of a nettest, little-endian: magic 4, slot 4, client 8, sequence 8, reserved 8. In a ping
// the pattern follows, if it is verified. In a request for a bulk round trip, the descriptors of the client's passive
// send and passive receive follow.

#include <fairlead/net/descriptor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tools/base/pattern.hpp"
#include "tools/nettest/plan.hpp"

namespace fairlead::tools {

struct NettestStamp {
  std::uint64_t client = 0;    // random, one per client agent
  std::uint32_t slot = 0;      // of the client
  std::uint64_t sequence = 0;  // of the slot

  PayloadName payload() const { return {client, slot, static_cast<std::uint32_t>(sequence), Direction::to_server}; }
  bool operator==(const NettestStamp&) const = default;
};

inline constexpr std::size_t kStampBytes = kNettestSizeMin;
inline constexpr std::size_t kBulkRequestBytes = kStampBytes + 2 * net::kDescriptorSize;

/// `to` must have at least kStampBytes.
void write_stamp(std::span<std::byte> to, const NettestStamp& stamp);
/// Returns nullopt if it is no message of a nettest.
std::optional<NettestStamp> read_stamp(std::span<const std::byte> from);

}  // namespace fairlead::tools
