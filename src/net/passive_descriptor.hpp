#pragma once
// Buffer descriptors at the level of this interface: who may use which (docs/net.md, "Descriptors"). src/wire encodes
// them.

#include <expected>
#include <span>

#include <fairlead/net/descriptor.hpp>

#include "engine/core.hpp"

namespace fairlead::net {

struct PassiveDescriptor {
  engine::RemotePort owner;
  QueueKind kind = QueueKind::passive_bulk_receive;
  std::uint64_t epoch = 0;
  std::uint64_t key = 0;
  std::uint64_t size = 0;  // bytes
};

BufferDescriptor encode_descriptor(const PassiveDescriptor& passive);

/// Decodes a descriptor for an active buffer of `kind` and `length` bytes. Checks in Motr's order: length and checksum
/// (invalid), matching pair of queues (not_permitted), sizes (too_big), other fields (invalid).
std::expected<PassiveDescriptor, Status> decode_descriptor(std::span<const std::byte> bytes, QueueKind kind,
                                                           std::uint64_t length);

}  // namespace fairlead::net
