#pragma once
// A control segment to an address without a peer (any more).

#include <array>
#include <cstdint>
#include <optional>

#include "base/socket_address.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {

using SealedClose = std::array<std::byte, wire::kSegmentHeaderBytes + wire::kTagBytes>;

struct Stray {
  base::SocketAddress to;
  wire::Kind kind = wire::Kind::reset;
  std::uint8_t flags = 0;
  std::uint32_t slot = 0;
  std::uint64_t token = 0;
  std::uint64_t word = 0;  // the cookie of a hello_retry, or the reason of a hello_refused
  wire::Sequence ack{};    // of a close: its last ACK
  std::uint64_t ack_bitmap = 0;
  // the whole datagram of a sealed close, since it leaves after its session is gone
  std::optional<SealedClose> sealed{};

  wire::Header header() const {
    wire::Header header;
    header.kind = kind;
    header.flags = flags;
    header.slot = slot;
    header.token = token;
    header.ack = ack;
    header.ack_bitmap = ack_bitmap;
    return header;
  }
};

}  // namespace fairlead::link
