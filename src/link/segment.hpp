#pragma once
// The unit of sequence numbers and acknowledgements: one datagram. A segment is in one list at a time, by its only
// hook: its peer's queue (not sent yet), in flight, or the link's resend list. Its ACK frees it.
//
// Short messages are stored in the segment's own block: the header and the records, contiguous, so that a lone message
// leaves as one piece. For a longer message or a chunk the segment holds only the header and the record, and points to
// the sender's bytes.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"
#include "link/message.hpp"
#include "wire/layout.hpp"
#include "wire/sequence.hpp"

namespace fairlead::link {

struct Peer;

/// usnic's channels. `command` is served first, and bulk leaves it a part of the window.
enum class Channel : std::uint8_t { command, data };
inline constexpr std::size_t kChannels = 2;
constexpr std::size_t index_of(Channel channel) {
  return static_cast<std::size_t>(channel);
}

/// What triggered the resend. `recut`: the path's MTU has become smaller than the segment. `returned`: no loss, the
/// path did not take the segment.
enum class ResendCause : std::uint8_t { fast, probe, timeout, recut, returned };

/// 33 cache lines. An odd number, so that the first lines of many blocks do not map to the same cache sets.
struct alignas(64) Block {
  static constexpr std::size_t kBytes = 1920;
  static constexpr std::size_t kRecordsMax = 24;
  std::array<std::byte, kBytes> bytes;
  std::array<std::uint64_t, kRecordsMax> cookies;
};
static_assert(sizeof(Block) == std::size_t{33} * 64);

struct Segment {
  static constexpr std::size_t kHeadBytes = wire::kSegmentHeaderBytes + wire::kRecordBytes + wire::kChunkBytes;
  static constexpr std::uint32_t kPiecesMax = 64;  // of the sender's bytes; a chunk ends early rather than exceed it

  ListHook hook;
  Peer* peer = nullptr;
  Block* block = nullptr;             // short messages, or
  Message* message = nullptr;         // the message that this segment is a part of
  std::uint32_t size = 0;             // of the datagram
  std::uint32_t records = 0;          // in the block
  std::uint32_t outcomes_wanted = 0;  // bit i: the sender wants the outcome of record i
  // for a block of ordered messages: number of long ones to this peer that leave first
  std::uint32_t ordered_before = 0;

  std::uint32_t head_bytes = 0;     // in `head`
  std::uint32_t payload_bytes = 0;  // of the message, from piece, piece_offset on
  std::uint32_t piece = 0;
  std::uint32_t piece_count = 0;
  std::uint64_t piece_offset = 0;

  wire::Sequence sequence;
  Channel channel = Channel::data;
  ResendCause cause = ResendCause::fast;
  bool is_waiting = false;  // on the resend list
  std::uint32_t transmissions = 0;
  std::uint64_t order = 0;         // number of its last transmission to this peer
  base::Instant sent_at;           // time of its last transmission
  std::uint64_t order_before = 0;  // of the transmission before the last
  base::Instant sent_before;
  std::uint32_t parts_sent = 0;  // of this transmission, if it goes in parts
  std::uint32_t part_bytes = 0;  // payload length of each part

  alignas(8) std::array<std::byte, kHeadBytes> head;

  /// Removes a message's record from the block; returns false if it is not there. `is_wanted`: set if its sender wants
  /// the outcome.
  bool take_out(std::uint64_t cookie, bool& is_wanted);
  /// Drops the payload, because the message was taken back.
  void make_void();
};

using SegmentList = boost::intrusive::list<Segment, boost::intrusive::member_hook<Segment, ListHook, &Segment::hook>,
                                           boost::intrusive::constant_time_size<false>>;

}  // namespace fairlead::link
