#pragma once
// The segment: the header of every datagram, and its checked decoding. After decode() the length of the payload fits
// its kind, so nobody checks it again.
//
// A sealed segment (docs/seal.md) has a number in place of the checksum, and a tag behind its encrypted payload.
// decode() can check only what is in the clear; check_payload() checks the rest after decryption.

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
inline constexpr std::size_t kDatagramSizeLeast = 1200;   // UDP payload that every path has to carry
inline constexpr std::size_t kDatagramSizeMost = 65'507;  // that an IPv4 packet carries
inline constexpr std::uint32_t kSlotsMost = 1U << 24;
inline constexpr std::size_t kAckWordsMax = 63;  // with the header's 64 bits: a window of 4096

enum class Kind : std::uint8_t {
  hello = 1,         // offers a session
  hello_ack = 2,     // answers a hello with the other half
  data = 3,          // messages or a chunk; the segment (with its parts) has a sequence and is acknowledged
  ack = 4,           // an ACK without data; payload: further words of the bitmap
  reset = 5,         // its sender does not know the session; echoes the token of the segment that it answers
  close = 6,         // the sender has ended the session
  probe = 7,         // asks whether datagrams of this length arrive; `sequence` numbers it, its payload has no meaning
  probe_answer = 8,  // the probe arrived; returns its number
  part = 9,          // of a data segment too long for its path (part.hpp)
  hello_retry = 10,  // asks for a hello again (by its token), together with the cookie in the payload
  hello_refused = 11,  // why the hello (by its token) is refused; unauthenticated
  rekey = 12,          // sealed sessions: first handshake message for the next keys
  rekey_answer = 13,   // and the second one
};

/// Bits of the header's flags.
struct Flags {
  static constexpr std::uint8_t kCommand = 1;       // belongs to the command channel
  static constexpr std::uint8_t kAnswerAtOnce = 2;  // asks for an ACK without delay
  static constexpr std::uint8_t kEchoes = 4;        // echo and echo_delay are valid
  static constexpr std::uint8_t kDuplicate = 8;     // the segment echoed is a duplicate
  static constexpr std::uint8_t kAsks = 16;         // the sender lacks a grant for long messages that wait
  // of a close: nothing is pending, but the place in the table is needed
  static constexpr std::uint8_t kIdle = kCommand;
  static constexpr std::uint8_t kLeaves =
      kAnswerAtOnce;                        // of a close: the sender's engine ends, and waits for an answer
  static constexpr std::uint8_t kAll = 31;  // bits that may be set in the clear

  static constexpr std::uint8_t kEpoch = 0x60;  // of a sealed segment: lower bits of its keys' epoch
  static constexpr std::uint8_t kEpochShift = 5;
  static constexpr std::uint8_t kSealed = 0x80;
};
inline constexpr std::size_t kTagBytes = 16;  // behind the payload of a sealed segment

struct Header {
  Kind kind = Kind::data;
  std::uint8_t flags = 0;
  std::uint32_t slot = 0;        // index of the receiver's session: not secret; below kSlotsMost
  std::uint16_t credits = 0;     // what the receiver may have in flight: 0 no limit, otherwise KiB + 1
  std::uint64_t token = 0;       // of the receiver's session; in a hello: the cookie, 0 if there is none
  Sequence sequence;             // of data
  Sequence ack;                  // the next sequence expected: all before it have arrived
  std::uint64_t ack_bitmap = 0;  // bit i: ack + 1 + i has arrived
  Ticks timestamp;               // when the segment left
  Ticks echo;                    // timestamp of the segment that triggered this ACK
  Ticks echo_delay;              // how long that segment waited for this ACK
};

struct Frame {
  Header header;
  // of a sealed segment including its tag; sealed hellos and their answers have no tag
  std::span<const std::byte> payload;

  bool is_sealed() const { return (header.flags & Flags::kSealed) != 0; }
};

/// Decodes a datagram: a checked frame, or the reason to drop it.
std::expected<Frame, DropReason> decode(std::span<const std::byte> datagram);

/// Checks the payload of a sealed segment after decryption, as decode() does for segments in the clear.
std::optional<DropReason> check_payload(Kind kind, std::span<const std::byte> payload);

/// Writes a header with a checksum of zero.
void encode(const Header& header, std::byte* to);

/// Writes the checksum of a datagram. `head` begins with the header; `rest` follows it.
void add_checksum(std::span<std::byte> head, std::span<const iovec> rest);

/// Turns an encoded header into that of a sealed segment, with the lower bits of the epoch and the lower half of the
/// number.
void mark_sealed(std::byte* header, std::uint8_t epoch, std::uint32_t number);
/// These read what mark_sealed() wrote.
inline std::uint8_t epoch_of(const Header& header) {
  return static_cast<std::uint8_t>((header.flags & Flags::kEpoch) >> Flags::kEpochShift);
}
std::uint32_t number_of(std::span<const std::byte> header);
/// Returns the header bytes of a frame that decode() made.
inline std::span<const std::byte> header_bytes(const Frame& frame) {
  return {frame.payload.data() - kSegmentHeaderBytes, kSegmentHeaderBytes};
}

}  // namespace fairlead::wire
