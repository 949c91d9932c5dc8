#include "link/send_queues.hpp"

#include <algorithm>
#include <cstring>

#include "link/reference.hpp"
#include "wire/record.hpp"

namespace fairlead::link {
namespace {

constexpr std::uint32_t kEagerInFlight = 4;
constexpr std::uint32_t kSegmentsWorthACall = 6;
constexpr std::uint32_t kTinyBytes = 16;  // a segment without space for a message of this size counts as full

}  // namespace

bool SendQueues::has_memory_for(Peer& peer) {
  return context_.news.has_room_for_outcomes() && peer.window.reserve(context_.options.window_segments);
}

Status SendQueues::add(Peer& peer, const Outgoing& message, Reference& reference) {
  return message.size <= context_.options.embedded_max ? embed(peer, message, reference)
                                                       : refer(peer, message, reference);
}

Status SendQueues::embed(Peer& peer, const Outgoing& message, Reference& reference) {
  // All ordered messages use the data channel, whatever their size.
  const bool is_command = message.size <= context_.options.tiny_max && !message.is_ordered;
  const Channel channel = is_command ? Channel::command : Channel::data;
  std::uint32_t& waiting = peer.queued_messages[index_of(channel)];
  if (waiting >= (channel == Channel::command ? context_.options.command_depth : context_.options.data_depth))
    return Status::again;
  const auto bytes = static_cast<std::uint32_t>(wire::whole_bytes(message.size));
  Segment* segment = block_with_space(peer, channel, bytes, message.is_ordered ? peer.ordered : peer.ordered_cut);
  if (segment == nullptr) [[unlikely]]
    return Status::again;

  const auto begin = static_cast<std::uint32_t>(wire::aligned(segment->size));
  std::byte* to = segment->block->bytes.data() + segment->size;
  std::memset(to, 0, begin - segment->size);
  to = segment->block->bytes.data() + begin;
  wire::encode_whole(message.envelope, static_cast<std::uint16_t>(message.size), to);
  if (message.owner != Outcome::kNobody) wire::encode_cookie(word_of(name_of(*segment, segment->numbers)), to);
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
  segment->keep({.cookie = message.cookie, .owner = message.owner, .length = static_cast<std::uint16_t>(message.size)},
                message.wants_outcome);
  ++waiting;
  reference = reference_to(*segment);
  return Status::ok;
}

std::uint32_t SendQueues::block_size_max(const Peer& peer) const {
  const std::uint32_t least = std::uint32_t{wire::kDatagramSizeLeast} - context_.tag_bytes_at_most;
  return std::min(context_.options.command_segment_max, peer.state == Peer::State::open ? peer.datagram_size : least);
}

/// Returns whether to send now. A lone message never waits. While a few segments are in flight, messages wait until the
/// next pass, so that they leave together. When they are worth a system call, they are sent at once: otherwise sender
/// and receiver would work in turns.
bool SendQueues::is_eager(const Peer& peer) const {
  if (peer.window.in_flight() < kEagerInFlight) return true;
  const auto channel = index_of(Channel::command);
  if (peer.queued_segments[channel] < kSegmentsWorthACall) return false;
  const Segment& last = peer.queued[channel].back();
  return last.records == Block::kRecordsMax || last.size + wire::whole_bytes(kTinyBytes) > block_size_max(peer);
}

/// Returns the last waiting segment if the record fits and may leave with it, so that messages that wait together
/// travel together. Otherwise a new segment; null if there is none.
Segment* SendQueues::block_with_space(Peer& peer, Channel channel, std::uint32_t bytes, std::uint32_t ordered_before) {
  SegmentList& queue = peer.queued[index_of(channel)];
  if (!queue.empty()) {
    Segment& last = queue.back();
    if (last.records < Block::kRecordsMax && last.numbers < Segment::kNumbersMax &&
        last.ordered_before == ordered_before && wire::aligned(last.size) + bytes <= block_size_max(peer))
      return &last;
  }
  Segment* segment = context_.hotel.check_in_with_block(peer);
  if (segment == nullptr) [[unlikely]]
    return nullptr;
  segment->channel = channel;
  segment->size = wire::kSegmentHeaderBytes;
  segment->ordered_before = ordered_before;
  queue.push_back(*segment);
  ++peer.queued_segments[index_of(channel)];
  return segment;
}

Status SendQueues::refer(Peer& peer, const Outgoing& message, Reference& reference) {
  // The sender needs the outcome to know when it may reuse its memory.
  if (!message.wants_outcome) return Status::invalid;
  if (peer.messages_open >= context_.options.data_depth) return Status::again;
  Message* taken = context_.messages.take();
  if (taken == nullptr) [[unlikely]]
    return Status::again;
  taken->envelope = message.envelope;
  taken->pieces = message.pieces;
  taken->size = message.size;
  taken->cookie = message.cookie;
  taken->wants_outcome = message.wants_outcome;
  taken->is_ordered = message.is_ordered;
  if (message.is_ordered) ++peer.ordered;
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

bool SendQueues::cancel(Peer& peer, Reference reference, std::uint64_t cookie) {
  if (reference == 0) return false;
  if (Segment* const segment = segment_of(reference)) return cancel_embedded(peer, *segment, cookie);
  Message& message = *message_of(reference);
  if (!message.hook.is_linked() || message.cookie != cookie || message.is_void) return false;
  message.pieces = {};
  context_.news.finish(message.cookie, message.wants_outcome, Status::canceled);
  if (message.bytes_cut == 0) {
    message.hook.unlink();
    --peer.messages_open;
    if (message.is_ordered) ++peer.ordered_cut;
    context_.messages.give(&message);
    return true;
  }
  message.is_void = true;
  if (!message.is_cut()) {
    message.hook.unlink();
    peer.messages.push_front(message);
    context_.agenda.make_ready(peer);
  }
  return true;
}

bool SendQueues::recall(Peer& peer, Reference reference, std::uint64_t cookie) {
  if (reference == 0 || segment_of(reference) != nullptr || message_of(reference)->is_cut()) return false;
  return cancel(peer, reference, cookie);
}

bool SendQueues::is_owing_long(const Peer& peer) {
  const auto is_wanted = [](const Message& message) { return !message.is_void; };
  return std::ranges::any_of(peer.messages, is_wanted) || std::ranges::any_of(peer.messages_cut, is_wanted);
}

/// Cancels a short message whose segment waits for its first transmission.
bool SendQueues::cancel_embedded(const Peer& peer, Segment& segment, std::uint64_t cookie) {
  if (segment.block == nullptr || segment.peer != &peer) return false;
  const std::uint32_t index = segment.find_cookie(cookie);
  if (index == segment.records) return false;
  if (!segment.is_unsent()) {
    segment.given_up |= std::uint32_t{1} << index;
    return false;
  }
  const bool is_wanted = segment.is_wanted(index);
  take_out(segment, index);
  context_.news.finish(cookie, is_wanted, Status::canceled);
  return true;
}

void SendQueues::take_out(Segment& segment, std::uint32_t index) {
  Peer& peer = *segment.peer;
  const auto channel = static_cast<std::size_t>(segment.channel);
  segment.take_out(index);
  --peer.queued_messages[channel];
  if (segment.records > 0) return;
  --peer.queued_segments[channel];
  context_.hotel.check_out(segment);
}

void SendQueues::abandon(Peer& peer, Status status) {
  const auto end_records = [&](Segment& segment) {
    segment.block != nullptr ? context_.news.finish(segment, status) : context_.hotel.check_out(segment);
  };
  for (SegmentList& queue : peer.queued) {
    while (!queue.empty()) end_records(queue.front());
  }
  peer.ordered = peer.ordered_cut = 0;
  peer.queued_messages = peer.queued_segments = {};
  while (peer.window.in_flight() != 0) {
    Segment& segment = *peer.window.find(peer.window.oldest());
    peer.window.remove(segment);
    ++context_.counters.segments_abandoned;
    --context_.counters.segments_in_flight;
    end_records(segment);
  }
  for (MessageList* list : {&peer.messages, &peer.messages_cut}) {
    while (!list->empty()) {
      Message& message = list->front();
      list->pop_front();
      if (!message.is_void) context_.news.finish(message.cookie, message.wants_outcome, status);
      context_.messages.give(&message);
    }
  }
}

}  // namespace fairlead::link
