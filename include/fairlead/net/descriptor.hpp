#pragma once
// A descriptor names the memory of a bulk transfer: which buffer, how many bytes, on which host (docs/net.md,
// "Descriptors"). The passive side gives it to the active side.
//
// A descriptor is a fixed number of plain bytes that programs may copy, store and send. Its layout is the same on every
// host. It holds a 64-bit random key and names one incarnation of one engine, so it cannot be guessed. Once its buffer
// has completed or its process has ended, a descriptor is refused as `stale`. Any holder of the descriptor may use the
// memory once.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <fairlead/error.hpp>
#include <fairlead/net/queue_kind.hpp>

namespace fairlead::net {

inline constexpr std::size_t kDescriptorSize = 64;  ///< bytes

using BufferDescriptor = std::array<std::byte, kDescriptorSize>;

/// The contents of a descriptor.
struct DescriptorFacts {
  QueueKind kind = QueueKind::passive_bulk_receive;  ///< the queue of the passive buffer
  std::uint64_t size = 0;                            ///< bytes that may be written (receive) or read (send)
  std::string address;                               ///< the transfer machine of the passive buffer
};

/// Decodes a descriptor, for diagnostics or to choose a buffer of the right size. `invalid` names the fault in it. An
/// active add() makes the same checks. Pure.
[[nodiscard]] Result<DescriptorFacts> inspect(std::span<const std::byte> descriptor);

}  // namespace fairlead::net
