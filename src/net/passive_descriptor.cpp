#include "net/passive_descriptor.hpp"

#include <utility>

#include <fmt/format.h>

#include "net/net_address.hpp"
#include "wire/buffer_descriptor.hpp"

namespace fairlead::net {
namespace {

static_assert(kDescriptorSize == wire::kBufferDescriptorBytes);

constexpr auto kPassiveReceive = std::to_underlying(QueueKind::passive_bulk_receive);
constexpr auto kPassiveSend = std::to_underlying(QueueKind::passive_bulk_send);

PassiveDescriptor in_terms_of_the_face(const wire::BufferDescriptor& descriptor) {
  return {.owner = {descriptor.engine, descriptor.port},
          .kind = static_cast<QueueKind>(descriptor.queue),
          .epoch = descriptor.epoch,
          .key = descriptor.key,
          .size = descriptor.size};
}

std::string_view name_of(wire::DescriptorFault fault) {
  switch (fault) {
    case wire::DescriptorFault::length:
      return "its length is wrong";
    case wire::DescriptorFault::checksum:
      return "its checksum does not match: it was damaged on its way";
    case wire::DescriptorFault::magic:
      return "it is not a buffer descriptor";
    case wire::DescriptorFault::version:
      return "its version is unknown: use the same release on both sides";
  }
  return "it is malformed";
}

}  // namespace

BufferDescriptor encode_descriptor(const PassiveDescriptor& passive) {
  BufferDescriptor bytes;
  wire::encode({.engine = passive.owner.engine,
                .port = passive.owner.port,
                .queue = std::to_underlying(passive.kind),
                .epoch = passive.epoch,
                .key = passive.key,
                .size = passive.size},
               bytes);
  return bytes;
}

std::expected<PassiveDescriptor, Status> decode_descriptor(std::span<const std::byte> bytes, QueueKind kind,
                                                           std::uint64_t length) {
  if (wire::find_fault(bytes)) return std::unexpected(Status::invalid);
  const wire::BufferDescriptor descriptor = wire::read_descriptor(bytes);
  if (descriptor.queue == kPassiveSend) {
    if (kind != QueueKind::active_bulk_receive) return std::unexpected(Status::not_permitted);
    if (descriptor.size > length) return std::unexpected(Status::too_big);
  } else if (descriptor.queue == kPassiveReceive) {
    if (kind != QueueKind::active_bulk_send) return std::unexpected(Status::not_permitted);
    if (length > descriptor.size) return std::unexpected(Status::too_big);
  } else {
    return std::unexpected(Status::invalid);
  }
  if (!wire::is_possible(descriptor)) return std::unexpected(Status::invalid);
  return in_terms_of_the_face(descriptor);
}

Result<DescriptorFacts> inspect(std::span<const std::byte> bytes) {
  const auto malformed = [&](std::string_view fault) {
    return std::unexpected(Error{Status::invalid, 0,
                                 fmt::format("malformed buffer descriptor of {} bytes: {}; pass on the {} bytes of "
                                             "Buffer::descriptor() unchanged",
                                             bytes.size(), fault, kDescriptorSize)});
  };
  if (const auto fault = wire::find_fault(bytes)) return malformed(name_of(*fault));
  const wire::BufferDescriptor descriptor = wire::read_descriptor(bytes);
  if (descriptor.queue != kPassiveReceive && descriptor.queue != kPassiveSend) {
    return malformed("its queue is not a passive one");
  }
  if (!wire::is_possible(descriptor)) return malformed("a field has an impossible value");
  const PassiveDescriptor passive = in_terms_of_the_face(descriptor);
  return DescriptorFacts{.kind = passive.kind, .size = passive.size, .address = address_text(passive.owner)};
}

}  // namespace fairlead::net
