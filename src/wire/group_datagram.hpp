#pragma once
// What travels to a group of hosts (IP multicast): one datagram of a UD queue pair, whole, at a UDP port of its own. It
// belongs to no session: its sender has proven nothing, not even its address (docs/wire.md).

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include <sys/uio.h>

#include "wire/drop_reason.hpp"
#include "wire/layout.hpp"

namespace fairlead::wire {

inline constexpr std::uint8_t kGroupKind = 14;  // no kind of a segment: decode() refuses it, and this refuses segments
inline constexpr std::size_t kGroupBytesMost = 4096;

struct GroupDatagram {
  std::uint16_t flags = 0;        // request_flags: imm, solicited, traffic class
  std::uint32_t source_port = 0;  // number of the queue pair that sent it
  std::uint32_t queue_key = 0;
  std::array<std::uint8_t, 16> group{};  // the GID: several groups may share an address
  std::uint32_t imm = 0;
  std::span<const std::byte> bytes;
};

/// Any bytes are a datagram or a reason.
std::expected<GroupDatagram, DropReason> decode_group(std::span<const std::byte> datagram);

/// Writes the kGroupHeaderBytes before the bytes, which are `pieces` (of `size` bytes) instead of datagram.bytes.
void encode_group(const GroupDatagram& datagram, std::span<const iovec> pieces, std::uint32_t size, std::byte* to);

}  // namespace fairlead::wire
