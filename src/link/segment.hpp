#pragma once
// What is sequenced and acknowledged: one datagram's worth. A segment is in one place at a time, and its one list
// hook says where: in its peer's queue (not sent yet), in flight, or on the link's resend list; and gone with its ACK.
//
// Short messages lie in a block of the segment's own, header and records end to end, so that a lone one goes out as
// one contiguous piece. A longer message or a chunk keeps only its header and record here and points to the sender's
// bytes.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"
#include "link/message.hpp"
#include "wire/layout.hpp"
#include "wire/sequence.hpp"

namespace fairlead::link {

struct Peer;

/// usnic's channels: `command` is served first, and bulk leaves it a part of the window.
enum class Channel : std::uint8_t { command, data };
inline constexpr std::size_t kChannels = 2;
constexpr std::size_t index_of(Channel channel) {
  return static_cast<std::size_t>(channel);
}

/// What found the loss; `recut`: it is too long for the path since that was measured; `returned` is no loss: the path
/// did not take it.
enum class ResendCause : std::uint8_t { fast, probe, timeout, recut, returned };

/// 33 cache lines: an odd number, so that the first lines of many blocks do not meet in the same cache sets.
struct alignas(64) Block {
  static constexpr std::size_t kBytes = 1920;
  static constexpr std::size_t kRecordsMax = 24;
  std::array<std::byte, kBytes> bytes;
  std::array<std::uint64_t, kRecordsMax> cookies;
};
static_assert(sizeof(Block) == std::size_t{33} * 64);

struct Segment {
  static constexpr std::size_t kHeadBytes = wire::kSegmentHeaderBytes + wire::kRecordBytes + wire::kChunkBytes;
  static constexpr std::uint32_t kPiecesMax = 64;  // of the sender's bytes; a chunk ends early rather than have more

  ListHook hook;
  Peer* peer = nullptr;
  Block* block = nullptr;             // short messages, or
  Message* message = nullptr;         // a part of this one
  std::uint32_t size = 0;             // of the datagram
  std::uint32_t records = 0;          // in the block
  std::uint32_t outcomes_wanted = 0;  // bit i: of record i
  std::uint32_t ordered_before = 0;   // of a block of ordered messages: the long ones to this peer that leave first

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
  std::uint64_t order = 0;         // of its last transmission among its peer's
  base::Instant sent_at;           // its last transmission
  std::uint64_t order_before = 0;  // of the one before that
  base::Instant sent_before;
  std::uint32_t parts_sent = 0;  // of this transmission, if it goes in parts...
  std::uint32_t part_bytes = 0;  // ...of this length

  alignas(8) std::array<std::byte, kHeadBytes> head;

  /// Removes the record of a message from the block; false if it is not there. Whether its sender wants its outcome.
  bool take_out(std::uint64_t cookie, bool& is_wanted);
  /// Its message was taken back: it goes without the bytes.
  void make_void();
};

using SegmentList = boost::intrusive::list<Segment, boost::intrusive::member_hook<Segment, ListHook, &Segment::hook>,
                                           boost::intrusive::constant_time_size<false>>;

}  // namespace fairlead::link
