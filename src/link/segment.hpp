#pragma once
// The unit of sequence numbers and acknowledgements: one datagram. A segment is in one list at a time, by its only
// hook: its peer's queue (not sent yet), in flight, the link's resend list, or the news. Its ACK frees it; a segment of
// short messages first joins the news, until their outcomes have been fetched.
//
// Short messages are stored in the segment's own block: the header and the records, contiguous, so that a lone message
// leaves as one piece. For a longer message or a chunk the segment holds only the header and the record, and points to
// the sender's bytes.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"
#include "link/link.hpp"
#include "link/message.hpp"
#include "wire/layout.hpp"
#include "wire/sequence.hpp"

namespace fairlead::link {

struct Peer;

/// usnic's channels. `command` is served first, and `data` leaves it a part of the window.
enum class Channel : std::uint8_t { command, data };
inline constexpr std::size_t kChannels = 2;
constexpr std::size_t index_of(Channel channel) {
  return static_cast<std::size_t>(channel);
}

/// What triggered the resend. `recut`: the path's MTU has become smaller than the segment. `returned`: no loss, the
/// path did not take the segment.
enum class ResendCause : std::uint8_t { fast, probe, timeout, recut, returned };

/// What remains of a short message for its outcome.
struct Kept {
  std::uint64_t cookie = 0;
  std::uint32_t owner = Outcome::kNobody;
  std::uint16_t length = 0;
  std::uint8_t number = 0;  // counts all messages that were ever put into the segment
  Status status = Status::ok;
};
static_assert(sizeof(Kept) == 16);

/// 37 cache lines. An odd number, so that the first lines of many blocks do not map to the same cache sets.
struct alignas(64) Block {
  static constexpr std::size_t kBytes = 1920;
  static constexpr std::size_t kRecordsMax = 24;
  std::array<std::byte, kBytes> bytes;
  std::array<Kept, kRecordsMax> kept;
  std::array<std::byte, 64> unused;
};
static_assert(sizeof(Block) == std::size_t{37} * 64);

struct Segment {
  static constexpr std::size_t kHeadBytes = wire::kSegmentHeaderBytes + wire::kRecordBytes + wire::kChunkBytes;
  static constexpr std::uint32_t kPiecesMax = 64;   // of the sender's bytes; a chunk ends early rather than exceed it
  static constexpr std::uint32_t kNumbersMax = 64;  // short messages put into a block, including those taken out again

  std::uint32_t room = 0;  // number of the room in the hotel
  std::uint32_t use = 0;   // the count of rooms taken when this one was
  ListHook hook;
  Peer* peer = nullptr;
  Block* block = nullptr;             // short messages, or
  Message* message = nullptr;         // the message that this segment is a part of
  std::uint32_t size = 0;             // of the datagram
  std::uint32_t records = 0;          // in the block
  std::uint32_t numbers = 0;          // given to records so far
  std::uint32_t outcomes_wanted = 0;  // bit i: the sender wants the outcome of record i
  std::uint32_t given_up = 0;         // bit i: the sender cancelled record i, which was already sent
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
  bool is_ended = false;    // among the news
  std::uint32_t transmissions = 0;
  std::uint64_t order = 0;         // number of its last transmission to this peer
  base::Instant sent_at;           // time of its last transmission
  std::uint64_t order_before = 0;  // of the transmission before the last
  base::Instant sent_before;
  std::uint32_t parts_sent = 0;  // of this transmission, if it goes in parts
  std::uint32_t part_bytes = 0;  // payload length of each part

  alignas(8) std::array<std::byte, kHeadBytes> head;

  /// Adds a record that was just written into the block.
  void keep(const Kept& record, bool is_wanted) {
    block->kept[records] = record;
    block->kept[records].number = static_cast<std::uint8_t>(numbers++);
    outcomes_wanted |= std::uint32_t{is_wanted} << records;
    ++records;
  }
  bool is_wanted(std::uint32_t index) const { return ((outcomes_wanted >> index) & 1) != 0; }
  /// Returns whether the sender still wants a record to arrive.
  bool is_owing() const { return !is_ended && (~given_up & ((std::uint32_t{1} << records) - 1)) != 0; }
  /// Removes a message's record from the block.
  void take_out(std::uint32_t index);
  /// Return the index of the record without an owner that has this cookie, or of the record with this number; `records`
  /// if there is none.
  std::uint32_t find_cookie(std::uint64_t cookie) const;
  std::uint32_t find_number(std::uint32_t number) const;
  /// Returns whether the segment waits for its first transmission.
  bool is_unsent() const { return hook.is_linked() && transmissions == 0 && !is_waiting && !is_ended; }
  /// Drops the payload, because the message was taken back.
  void make_void();
};

using SegmentList = boost::intrusive::list<Segment, boost::intrusive::member_hook<Segment, ListHook, &Segment::hook>,
                                           boost::intrusive::constant_time_size<false>>;

}  // namespace fairlead::link
