#pragma once
// One segment: the header that every datagram begins with, and its checked decode. After decode() nobody looks at
// lengths again: the payload is a hello, a run of records, an ACK's further bitmap, or nothing, as the kind says.
//
// A sealed segment (docs/seal.md) has a number where others have their checksum, and a tag behind its payload, which is
// encrypted. decode() can check only what is in the clear; check_payload() does the rest when it has been opened.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>

#include <sys/uio.h>

#include "wire/drop_reason.hpp"
#include "wire/layout.hpp"
#include "wire/sequence.hpp"
#include "wire/ticks.hpp"

namespace fairlead::wire {

inline constexpr std::uint8_t kVersion = 2;
inline constexpr std::size_t kDatagramSizeLeast = 1200;  // every path carries this much
inline constexpr std::size_t kDatagramSizeMost = 65'000;
inline constexpr std::uint32_t kSlotsMost = 1U << 24;
inline constexpr std::size_t kAckWordsMax = 63;  // with the header's 64 bits: a window of 4096

enum class Kind : std::uint8_t {
  hello = 1,      // offers a session
  hello_ack = 2,  // answers a hello, offers the other half
  data = 3,       // messages or a chunk; it (and its parts) has a sequence and is acknowledged
  ack = 4,        // only an ACK; payload: further words of the bitmap
  reset = 5,      // the session named by this token is unknown here; echoes the token of the segment it answers
  close = 6,      // the sender has ended the session
  probe = 7,      // asks whether datagrams of this length arrive; its sequence is a number, its payload means nothing
  probe_answer = 8,    // it did: the number comes back
  part = 9,            // of a data segment that its path does not carry whole any more (part.hpp)
  hello_retry = 10,    // asks for the hello whose token this carries again, with the cookie that is its payload
  hello_refused = 11,  // says why the hello whose token this carries is refused; proves nothing
  rekey = 12,          // of a sealed session: the first message of a handshake for its next keys
  rekey_answer = 13,   // and the second one
};

/// Bits of the header's flags.
struct Flags {
  static constexpr std::uint8_t kCommand = 1;       // of the command channel
  static constexpr std::uint8_t kAnswerAtOnce = 2;  // acknowledge without delay
  static constexpr std::uint8_t kEchoes = 4;        // echo and echo_delay are valid
  static constexpr std::uint8_t kDuplicate = 8;     // the segment echoed had been received before
  static constexpr std::uint8_t kAsks = 16;         // the sender holds long messages back for want of a grant
  static constexpr std::uint8_t kIdle = kCommand;   // of a close: nothing is pending, the place is wanted
  static constexpr std::uint8_t kLeaves =
      kAnswerAtOnce;                        // of a close: the sender's engine ends, and waits for an answer
  static constexpr std::uint8_t kAll = 31;  // of what may be set in the clear

  static constexpr std::uint8_t kEpoch = 0x60;  // of a sealed segment: lower bits of the epoch of its keys
  static constexpr std::uint8_t kEpochShift = 5;
  static constexpr std::uint8_t kSealed = 0x80;
};
inline constexpr std::size_t kTagBytes = 16;  // behind the payload of a sealed segment

struct Header {
  Kind kind = Kind::data;
  std::uint8_t flags = 0;
  std::uint32_t slot = 0;        // where the receiver finds the session: no secret; below kSlotsMost
  std::uint16_t credits = 0;     // what the receiver of this may have in flight: 0 no bound, else KiB + 1
  std::uint64_t token = 0;       // of the receiver's session; of a hello: the cookie, 0 if none was given
  Sequence sequence;             // of data
  Sequence ack;                  // the next one expected: all before have arrived
  std::uint64_t ack_bitmap = 0;  // bit i: ack + 1 + i has arrived
  Ticks timestamp;               // when it left
  Ticks echo;                    // timestamp of the segment that made this ACK
  Ticks echo_delay;              // how long that one waited here
};

struct Frame {
  Header header;
  std::span<const std::byte> payload;  // of a sealed segment with its tag; hellos and their answers have none

  bool is_sealed() const { return (header.flags & Flags::kSealed) != 0; }
};

std::expected<Frame, DropReason> decode(std::span<const std::byte> datagram);

/// Of a sealed segment's payload when it has been opened: what decode() checks of others.
std::optional<DropReason> check_payload(Kind kind, std::span<const std::byte> payload);

/// Writes a header, its checksum still zero.
void encode(const Header& header, std::byte* to);

/// Writes the checksum of a datagram: `head` begins with the header, `rest` is what follows it.
void add_checksum(std::span<std::byte> head, std::span<const iovec> rest);

/// Makes an encoded header that of a sealed segment: the lower bits of its epoch, the lower half of its number.
void mark_sealed(std::byte* header, std::uint8_t epoch, std::uint32_t number);
/// What mark_sealed() wrote.
inline std::uint8_t epoch_of(const Header& header) {
  return static_cast<std::uint8_t>((header.flags & Flags::kEpoch) >> Flags::kEpochShift);
}
std::uint32_t number_of(std::span<const std::byte> header);
/// The bytes of the header of a frame that decode() made.
inline std::span<const std::byte> header_bytes(const Frame& frame) {
  return {frame.payload.data() - kSegmentHeaderBytes, kSegmentHeaderBytes};
}

}  // namespace fairlead::wire
