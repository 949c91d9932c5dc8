// Sends segments in parts that have their sequence and are too long for the path. A part is not acknowledged by itself:
// the segment is acknowledged when it is whole, and repaired as a whole.

#include <algorithm>

#include "link/trains.hpp"
#include "wire/part.hpp"

namespace fairlead::link {
namespace {

constexpr auto kPartHead = static_cast<std::uint32_t>(wire::kSegmentHeaderBytes + wire::kPartBytes);

/// Iterates over a segment's payload: the bytes in its head first, then its message's bytes.
class Payload {
 public:
  explicit Payload(Segment& segment) : segment_(segment) {
    std::byte* head = segment.block != nullptr ? segment.block->bytes.data() : segment.head.data();
    const std::uint32_t head_bytes = segment.block != nullptr ? segment.size : segment.head_bytes;
    next_ = {head + wire::kSegmentHeaderBytes, head_bytes - wire::kSegmentHeaderBytes};
  }

  /// Adds the next `bytes` to the train, or skips them if `train` is null.
  void take(std::uint64_t bytes, Train* train) {
    while (bytes != 0) {
      const std::uint64_t length = std::min<std::uint64_t>(bytes, next_.iov_len);
      if (length != 0 && train != nullptr) train->pieces[train->piece_count++] = {next_.iov_base, length};
      next_.iov_base = static_cast<std::byte*>(next_.iov_base) + length;
      next_.iov_len -= length;
      bytes -= length;
      if (next_.iov_len == 0 && bytes != 0) step();
    }
  }

 private:
  void step() {
    const iovec& piece = segment_.message->pieces[segment_.piece + piece_];
    const std::uint64_t skip = piece_ == 0 ? segment_.piece_offset : 0;
    next_ = {static_cast<std::byte*>(piece.iov_base) + skip, piece.iov_len - skip};
    ++piece_;
  }

  Segment& segment_;
  iovec next_;
  std::uint32_t piece_ = 0;
};

}  // namespace

/// Adds the next parts of a segment that waits for its resend. With its last part the segment leaves the list.
void Trains::serve_parts(Segment& segment, const wire::Header& base, base::Instant now, std::uint32_t bytes_max,
                         std::uint32_t datagrams_max, Train& train) {
  const Peer& peer = *segment.peer;
  const std::uint32_t part_bytes = (peer.datagram_size - kPartHead) & ~7U;
  const auto payload = static_cast<std::uint32_t>(segment.size - wire::kSegmentHeaderBytes);
  const std::uint32_t count = (payload + part_bytes - 1) / part_bytes;
  if (segment.part_bytes != part_bytes) segment.parts_sent = 0;  // the size of parts has changed: start again
  segment.part_bytes = part_bytes;
  last_.segment = &segment;
  last_.parts_before = segment.parts_sent;

  wire::Header header = base;
  header.kind = wire::Kind::part;
  header.sequence = segment.sequence;
  if (segment.parts_sent == 0 && segment.cause != ResendCause::returned) count_resend(segment, header);
  header.flags |= wire::Flags::kAnswerAtOnce;
  Payload rest(segment);
  rest.take(std::uint64_t{segment.parts_sent} * part_bytes, nullptr);
  train.to = peer.address;
  train.datagram_size = kPartHead + part_bytes;
  while (segment.parts_sent < count && train.datagrams < datagrams_max &&
         (train.datagrams == 0 || train.bytes + train.datagram_size <= bytes_max) &&
         train.piece_count + Segment::kPiecesMax + 2 <= Train::kPiecesInTrain) {
    const std::uint32_t length = std::min(part_bytes, payload - segment.parts_sent * part_bytes);
    const std::span head(part_heads_[train.datagrams]);
    wire::encode(header, head.data());
    wire::encode_part(static_cast<std::uint16_t>(segment.parts_sent), static_cast<std::uint16_t>(count), payload,
                      head.data() + wire::kSegmentHeaderBytes);
    const std::size_t first = train.piece_count;
    train.pieces[train.piece_count++] = {head.data(), head.size()};
    rest.take(length, &train);
    wire::add_checksum(head, {train.pieces + first + 1, train.piece_count - first - 1});
    ++train.datagrams;
    train.bytes += static_cast<std::uint32_t>(head.size()) + length;
    ++segment.parts_sent;
  }
  context_.counters.parts_sent += train.datagrams;
  context_.counters.datagrams_sent += train.datagrams;
  context_.counters.bytes_sent += train.bytes;
  if (train.datagrams == 1) train.datagram_size = train.bytes;
  if (segment.parts_sent < count) return;
  segment.parts_sent = 0;
  segment.hook.unlink();
  segment.is_waiting = false;
  note_transmission(segment, now);
}

}  // namespace fairlead::link
