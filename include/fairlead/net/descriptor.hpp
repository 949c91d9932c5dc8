#pragma once
// What one side of a bulk transfer gives to the other: which memory, how much, where (docs/net.md, "Descriptors").
//
// A descriptor is plain bytes of fixed size that may be copied, stored and sent; its layout is the same on every host.
// It holds a 64-bit random key and names one life of one engine, so it cannot be guessed. It is refused as `stale` once
// its buffer has completed or its process is gone. Whoever knows it may use the memory once.

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

/// What a descriptor says.
struct DescriptorFacts {
  QueueKind kind = QueueKind::passive_bulk_receive;  ///< queue of the passive buffer
  std::uint64_t size = 0;                            ///< bytes that may be written (receive) or read (send)
  std::string address;                               ///< of the passive buffer's transfer machine
};

/// Reads a descriptor for people and for choosing a buffer; `invalid` tells what is wrong with it. An active add()
/// makes the same checks by itself. Pure.
[[nodiscard]] Result<DescriptorFacts> inspect(std::span<const std::byte> descriptor);

}  // namespace fairlead::net
