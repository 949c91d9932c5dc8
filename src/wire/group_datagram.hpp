#pragma once
// A datagram to a multicast group: one whole datagram of a UD queue pair, at a UDP port of its own. It belongs to no
// session, and its sender has proven nothing, not even its address (docs/wire.md).

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include <sys/uio.h>

#include "wire/drop_reason.hpp"
#include "wire/layout.hpp"

namespace fairlead::wire {

// not a kind of segment: decode() refuses it, and decode_group() refuses segments
inline constexpr std::uint8_t kGroupKind = 14;
inline constexpr std::size_t kGroupBytesMost = 4096;

struct GroupDatagram {
  std::uint16_t flags = 0;        // request_flags: imm, solicited, traffic class
  std::uint32_t source_port = 0;  // number of the queue pair that sent it
  std::uint32_t queue_key = 0;
  std::array<std::uint8_t, 16> group{};  // the GID, since several groups may share an address
  std::uint32_t imm = 0;
  std::span<const std::byte> bytes;
};

/// Decodes any bytes into a datagram or a reason.
std::expected<GroupDatagram, DropReason> decode_group(std::span<const std::byte> datagram);

/// Writes the kGroupHeaderBytes of header. The payload is `pieces` (`size` bytes in all); datagram.bytes is not used.
void encode_group(const GroupDatagram& datagram, std::span<const iovec> pieces, std::uint32_t size, std::byte* to);

}  // namespace fairlead::wire
