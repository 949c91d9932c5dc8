#pragma once
// Buffer descriptors in the face's terms: who may use what (docs/net.md, "Descriptors"); the bytes are src/wire's.

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

/// For an active buffer of `kind` with `length` bytes. Checks in Motr's order: length and checksum (invalid), the right
/// pair of queues (not_permitted) and the sizes (too_big), then the other fields (invalid).
std::expected<PassiveDescriptor, Status> decode_descriptor(std::span<const std::byte> bytes, QueueKind kind,
                                                           std::uint64_t length);

}  // namespace fairlead::net
