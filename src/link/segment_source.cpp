#include "link/segment_source.hpp"

#include <algorithm>
#include <bit>

#include "base/rare.hpp"
#include "wire/record.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {
namespace {

constexpr std::uint32_t kWholeHead = wire::kSegmentHeaderBytes + wire::kRecordBytes;
constexpr std::uint32_t kChunkHead = kWholeHead + wire::kChunkBytes;
constexpr std::uint32_t kMessagesLooked = 8;  // how many messages are searched for a segment that prolongs the train
constexpr std::uint32_t kEndsTogether = 4;

Stretch stretch_of(const Message& message, std::uint32_t bytes_max) {
  Stretch stretch;
  std::uint64_t skip = message.piece_offset;
  std::uint32_t not_empty = 0;
  for (std::uint32_t i = message.piece; i < message.pieces.size() && not_empty < Segment::kPiecesMax; ++i) {
    const std::uint64_t length = std::min<std::uint64_t>(message.pieces[i].iov_len - skip, bytes_max - stretch.bytes);
    skip = 0;
    stretch.bytes += static_cast<std::uint32_t>(length);
    ++stretch.pieces;
    if (length != 0) ++not_empty;
    if (stretch.bytes == bytes_max) break;
  }
  return stretch;
}

/// Returns whether all long messages that precede this segment of short ones have left.
bool is_due(const Peer& peer, const Segment& segment) {
  return static_cast<std::int32_t>(segment.ordered_before - peer.ordered_cut) <= 0;
}

void advance(Message& message, std::uint32_t bytes) {
  message.bytes_cut += bytes;
  message.piece_offset += bytes;
  while (message.piece < message.pieces.size() && message.piece_offset >= message.pieces[message.piece].iov_len) {
    message.piece_offset -= message.pieces[message.piece].iov_len;
    ++message.piece;
  }
}

/// Chunks begin at multiples of 8 bytes if the message's pieces allow it.
std::uint32_t chunk_bytes_max(std::uint32_t datagram_size) {
  return (datagram_size - kChunkHead) & ~7U;
}

}  // namespace

bool SegmentSource::is_open_for(const Peer& peer, Channel channel, std::uint32_t size) const {
  // Whatever the limits are, one segment may always go. But a sender that is held back waits for its turn.
  if (peer.window.in_flight() == 0) return channel == Channel::command || peer.granted != 0;
  if (base::rare("link: the window looks full")) [[unlikely]]
    return false;
  // When long messages are next, short ones leave them a part of the window.
  const auto index = static_cast<std::size_t>(peer.is_bulk_due() ? Channel::data : channel);
  if (channel == Channel::data && peer.bytes_in_flight + size + context_.options.segment_overhead > peer.granted)
      [[unlikely]]
    return false;
  return peer.window.span() < peer.segments_limit[index] &&
         peer.bytes_in_flight + size + context_.options.segment_overhead <=
             std::min(peer.bytes_limit[index], peer.congestion.bytes());
}

bool SegmentSource::is_open_for_two(const Peer& peer, std::uint32_t size) const {
  return peer.window.span() + 1 < peer.segments_limit[static_cast<std::size_t>(Channel::data)] &&
         is_open_for(peer, Channel::data, 2 * size + context_.options.segment_overhead);
}

std::uint32_t SegmentSource::train_bytes(const Peer& peer, std::uint32_t bytes_max, std::uint32_t datagrams_max) {
  const std::uint32_t size = peer.datagram_size, chunk = chunk_bytes_max(size);
  const std::uint32_t whole = std::min(bytes_max / size, datagrams_max);
  std::uint64_t segments = 0;
  std::uint32_t looks = 0;
  for (const Message& message : peer.messages) {
    segments += (message.size - message.bytes_cut + chunk - 1) / chunk;
    if (segments > 2 * std::uint64_t{whole} || ++looks == kMessagesLooked) return bytes_max;
  }
  if (segments <= whole) return bytes_max;
  return static_cast<std::uint32_t>(segments + 1) / 2 * size;
}

Segment* SegmentSource::take_queued(Peer& peer, Channel channel, std::uint32_t size_max) {
  const auto index = static_cast<std::size_t>(channel);
  SegmentList& queue = peer.queued[index];
  if (queue.empty()) return nullptr;
  Segment& segment = queue.front();
  if (segment.size > size_max || !is_due(peer, segment) || !is_open_for(peer, channel, segment.size)) return nullptr;
  segment.hook.unlink();
  peer.queued_messages[index] -= segment.records;
  --peer.queued_segments[index];
  context_.counters.whole_sent += segment.records;
  return &segment;
}

Segment* SegmentSource::cut_next(Peer& peer, const Train& train, bool is_last, std::uint32_t bytes_left) {
  Portion portion;
  Message* const message = choose(peer, train, is_last, portion);
  if (message == nullptr || (train.datagrams != 0 && portion.size > bytes_left)) return nullptr;
  return cut(peer, *message, portion);
}

/// Returns the next message. First choice: a message whose next segment is as long as the train's others, so that the
/// train continues. If there is none, or the train ends anyway: a message whose next segment is shorter. Otherwise
/// null.
Message* SegmentSource::choose(Peer& peer, const Train& train, bool is_last, Portion& portion) {
  const std::uint32_t wanted =
      train.datagrams == 0 ? kChunkHead + chunk_bytes_max(peer.datagram_size) : train.datagram_size;
  Message* shorter = nullptr;
  Portion of_shorter;
  Message* equal = nullptr;
  std::uint32_t looks = 0, ends = 0;
  // Where one long segment fills a train, the ends of several messages make a train of their own, if more whole
  // segments wait.
  const bool gathers_ends = is_last && train.datagrams == 0;
  // An ordered message passes no other ordered one: no long one, and no short one that is next.
  const bool are_shorts_due =
      !peer.queued[index_of(Channel::data)].empty() && is_due(peer, peer.queued[index_of(Channel::data)].front());
  bool was_ordered = false;
  for (Message& message : peer.messages) {
    if (looks++ == kMessagesLooked || was_ordered || (message.is_ordered && are_shorts_due)) break;
    was_ordered = message.is_ordered;
    const Portion next = next_portion(peer, message);
    // A chunked message opens only if the peer has a free reassembly slot.
    if (!next.is_whole && message.slot == Message::kNoSlot &&
        std::countr_one(peer.slots_taken) >= static_cast<int>(peer.slots_granted)) {
      continue;
    }
    if (next.size == wanted) {
      if (equal == nullptr) {
        equal = &message;
        portion = next;
      }
    } else if (next.size < wanted || train.datagrams == 0) {
      ++ends;
      if (shorter == nullptr) {
        shorter = &message;
        of_shorter = next;
      }
    }
    if (equal != nullptr && !gathers_ends && (!is_last || shorter != nullptr)) break;
  }
  if (shorter == nullptr || (equal != nullptr && !is_last)) return equal;
  if (equal != nullptr && gathers_ends && ends < kEndsTogether && shorter->passed_by < kEndsTogether) {
    ++shorter->passed_by;
    return equal;
  }
  portion = of_shorter;
  return shorter;
}

/// Returns what one segment takes of this message now.
Portion SegmentSource::next_portion(const Peer& peer, const Message& message) {
  Portion portion;
  if (message.is_void) [[unlikely]] {
    portion.size = kChunkHead;
    return portion;
  }
  if (message.bytes_cut == 0 && message.size <= peer.datagram_size - kWholeHead) {
    portion.stretch = stretch_of(message, static_cast<std::uint32_t>(message.size));
    portion.is_whole = portion.stretch.bytes == message.size;  // otherwise it has too many pieces for one segment
  }
  if (!portion.is_whole) {
    const std::uint64_t left = message.size - message.bytes_cut;
    portion.stretch = stretch_of(
        message, static_cast<std::uint32_t>(std::min<std::uint64_t>(left, chunk_bytes_max(peer.datagram_size))));
  }
  portion.size = (portion.is_whole ? kWholeHead : kChunkHead) + portion.stretch.bytes;
  return portion;
}

Segment* SegmentSource::cut(Peer& peer, Message& message, const Portion& portion) {
  if (!is_open_for(peer, Channel::data, portion.size)) return nullptr;
  Segment* segment = context_.hotel.check_in(peer);
  if (segment == nullptr) [[unlikely]]
    return nullptr;
  const auto& [stretch, is_whole, size] = portion;

  std::byte* record = segment->head.data() + wire::kSegmentHeaderBytes;
  if (message.is_void) [[unlikely]] {
    wire::encode_void(message.envelope, {message.number, message.slot, message.size, 0}, record);
    message.bytes_cut = message.size;
    ++context_.counters.voids_sent;
  } else if (is_whole) {
    wire::encode_whole(message.envelope, static_cast<std::uint16_t>(stretch.bytes), record);
    ++context_.counters.whole_sent;
  } else {
    if (message.slot == Message::kNoSlot) {
      message.slot = static_cast<std::uint32_t>(std::countr_one(peer.slots_taken));
      message.number = ++peer.message_number;
      peer.slots_taken |= std::uint64_t{1} << message.slot;
    }
    wire::encode_chunk(message.envelope, {message.number, message.slot, message.size, message.bytes_cut},
                       static_cast<std::uint16_t>(stretch.bytes), record);
    ++context_.counters.chunks_sent;
  }
  segment->channel = Channel::data;
  segment->message = &message;
  segment->head_bytes = size - stretch.bytes;
  segment->payload_bytes = stretch.bytes;
  segment->piece = message.piece;
  segment->piece_count = stretch.pieces;
  segment->piece_offset = message.piece_offset;
  segment->size = size;
  ++message.segments_unacked;
  advance(message, stretch.bytes);
  if (message.is_cut()) {
    if (message.is_ordered) ++peer.ordered_cut;
    message.hook.unlink();
    peer.messages_cut.push_back(message);
  }
  return segment;
}

}  // namespace fairlead::link
