// Messages come in: short ones are written into a segment at once, where they stay until their ACK; longer ones are
// queued by reference and cut into segments when their turn comes.

#include <algorithm>
#include <cstring>

#include "base/rare.hpp"
#include "link/link_state.hpp"
#include "link/reference.hpp"

namespace fairlead::link {
namespace {

constexpr std::uint64_t kMessageSizeMost = std::uint64_t{1} << 48;
constexpr std::uint32_t kEagerInFlight = 4;
constexpr std::uint32_t kSegmentsWorthACall = 6;
constexpr std::uint32_t kTinyBytes = 16;  // where less than such a message still fits, a segment is full

std::uint64_t bytes_in(std::span<const iovec> pieces) {
  std::uint64_t sum = 0;
  for (const iovec& piece : pieces) sum += piece.iov_len;
  return sum;
}

std::size_t index_of(Channel channel) {
  return static_cast<std::size_t>(channel);
}

}  // namespace

Status Link::State::submit(PeerHandle handle, const Outgoing& message, base::Instant now, Reference* reference) {
  Peer* peer = peers.find(handle);
  if (peer == nullptr) [[unlikely]]
    return Status::stale;
  if (message.size > kMessageSizeMost) [[unlikely]]
    return Status::too_big;
  if (message.pieces.size() > kPiecesMax || bytes_in(message.pieces) < message.size) [[unlikely]]
    return Status::invalid;
  Status status = Status::again;
  const bool has_room = counters.messages_pending + outcomes.size() < options.messages_max &&
                        !(base::rare("link: a submit finds no room") && counters.messages_pending != 0);
  // What is needed until the message ends, so that nothing can be missing then.
  if (has_room && has_memory_for(*peer)) [[likely]] {
    Reference where = 0;
    status = message.size <= options.embedded_max ? embed(*peer, message, where) : refer(*peer, message, where);
    if (reference != nullptr) *reference = where;
  }
  if (status != Status::ok) [[unlikely]] {
    if (status == Status::again) ++counters.submits_refused;
    return status;
  }
  ++counters.messages_submitted;
  ++counters.messages_pending;
  counters.message_bytes_submitted += message.size;
  if (peer->state == Peer::State::closed) [[unlikely]] {
    if (is_leaving) {
      lose(*peer, Status::refused, now, true);
      return Status::ok;
    }
    begin_opening(*peer, now);
  }
  make_ready(*peer);
  return Status::ok;
}

bool Link::State::has_memory_for(Peer& peer) {
  return outcomes.has_room(counters.messages_pending + 1) &&
         (peer.state != Peer::State::closed || has_room_for_news()) && peer.window.reserve(options.window_segments);
}

Status Link::State::embed(Peer& peer, const Outgoing& message, Reference& reference) {
  const Channel channel = message.size <= options.tiny_max ? Channel::command : Channel::data;
  std::uint32_t& waiting = peer.queued_messages[index_of(channel)];
  if (waiting >= (channel == Channel::command ? options.command_depth : options.data_depth)) return Status::again;
  const auto bytes = static_cast<std::uint32_t>(wire::whole_bytes(message.size));
  Segment* segment = block_with_space(peer, channel, bytes);
  if (segment == nullptr) [[unlikely]]
    return Status::again;

  const auto begin = static_cast<std::uint32_t>(wire::aligned(segment->size));
  std::byte* to = segment->block->bytes.data() + segment->size;
  std::memset(to, 0, begin - segment->size);
  to = segment->block->bytes.data() + begin;
  wire::encode_whole(message.envelope, static_cast<std::uint16_t>(message.size), to);
  to += wire::kRecordBytes;
  std::uint64_t left = message.size;
  for (const iovec& piece : message.pieces) {
    const std::uint64_t length = std::min<std::uint64_t>(piece.iov_len, left);
    if (length == 0) continue;
    std::memcpy(to, piece.iov_base, length);
    to += length;
    left -= length;
  }
  segment->size = begin + bytes;
  segment->block->cookies[segment->records] = message.cookie;
  segment->outcomes_wanted |= std::uint32_t{message.wants_outcome} << segment->records;
  ++segment->records;
  ++waiting;
  reference = reference_to(*segment);
  return Status::ok;
}

std::uint32_t Link::State::block_size_max(const Peer& peer) const {
  const std::uint32_t least = std::uint32_t{wire::kDatagramSizeLeast} - tag_bytes_at_most();
  return std::min(options.command_segment_max, peer.state == Peer::State::open ? peer.datagram_size : least);
}

/// A lone message never waits. Behind a few segments in flight, messages wait for company until the next pass, but not
/// for more than a call is worth: else the receiver would have nothing to do while the sender gathers, and the sender
/// nothing while the receiver takes all of it.
bool Link::State::is_eager(const Peer& peer) const {
  if (peer.window.in_flight() < kEagerInFlight) return true;
  const auto channel = index_of(Channel::command);
  if (peer.queued_segments[channel] < kSegmentsWorthACall) return false;
  const Segment& last = peer.queued[channel].back();
  return last.records == Block::kRecordsMax || last.size + wire::whole_bytes(kTinyBytes) > block_size_max(peer);
}

/// The last segment that waits, if the record still fits: what waits together travels together.
Segment* Link::State::block_with_space(Peer& peer, Channel channel, std::uint32_t bytes) {
  SegmentList& queue = peer.queued[index_of(channel)];
  if (!queue.empty()) {
    Segment& last = queue.back();
    if (last.records < Block::kRecordsMax && wire::aligned(last.size) + bytes <= block_size_max(peer)) return &last;
  }
  Segment* segment = hotel.check_in_with_block(peer);
  if (segment == nullptr) [[unlikely]]
    return nullptr;
  segment->channel = channel;
  segment->size = wire::kSegmentHeaderBytes;
  queue.push_back(*segment);
  ++peer.queued_segments[index_of(channel)];
  return segment;
}

Status Link::State::refer(Peer& peer, const Outgoing& message, Reference& reference) {
  // Without an outcome the sender would never know when its bytes are its own again.
  if (!message.wants_outcome) return Status::invalid;
  if (peer.messages_open >= options.data_depth) return Status::again;
  Message* taken = messages.take();
  if (taken == nullptr) [[unlikely]]
    return Status::again;
  taken->envelope = message.envelope;
  taken->pieces = message.pieces;
  taken->size = message.size;
  taken->cookie = message.cookie;
  taken->wants_outcome = message.wants_outcome;
  taken->is_void = false;
  taken->bytes_cut = 0;
  taken->piece = 0;
  taken->piece_offset = 0;
  taken->passed_by = 0;
  taken->segments_unacked = 0;
  taken->number = 0;
  taken->slot = Message::kNoSlot;
  peer.messages.push_back(*taken);
  ++peer.messages_open;
  reference = reference_to(*taken);
  return Status::ok;
}

void Link::State::finish(std::uint64_t cookie, bool is_wanted, Status status) {
  --counters.messages_pending;
  if (status == Status::ok) [[likely]] {
    ++counters.messages_ok;
  } else {
    ++(status == Status::canceled ? counters.messages_canceled : counters.messages_failed);
  }
  if (is_wanted) outcomes.push({cookie, status});
}

}  // namespace fairlead::link
