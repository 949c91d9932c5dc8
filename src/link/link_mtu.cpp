// Datagrams of the length that the path carries: probes find it (path_mtu.hpp), and segments that have a sequence
// already and are too long for it go in parts. A part acknowledges nothing by itself: the segment is acknowledged when
// it is whole, and repaired as a whole.

#include <algorithm>

#include "base/rare.hpp"
#include "link/link_state.hpp"
#include "wire/part.hpp"

namespace fairlead::link {
namespace {

constexpr auto kPartHead = static_cast<std::uint32_t>(wire::kSegmentHeaderBytes + wire::kPartBytes);

/// A walk over a segment's payload: what its head holds, then its message's bytes.
class Payload {
 public:
  explicit Payload(Segment& segment) : segment_(segment) {
    std::byte* head = segment.block != nullptr ? segment.block->bytes.data() : segment.head.data();
    const std::uint32_t head_bytes = segment.block != nullptr ? segment.size : segment.head_bytes;
    next_ = {head + wire::kSegmentHeaderBytes, head_bytes - wire::kSegmentHeaderBytes};
  }

  /// Hangs the next `bytes` to the train, or skips them if there is none.
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

void Link::State::set_datagram_size(Peer& peer, base::Instant now) {
  std::uint32_t size = std::min(peer.path_datagram_max, options.datagram_size_max);
  if (peer.state != Peer::State::open) {
    peer.datagram_size = std::max(size, PathMtu::kLeast) - tag_bytes_at_most();
    return;
  }
  size = std::min(size, peer.theirs.datagram_size_max);
  peer.mtu.set_goal(size, now);
  follow_mtu(peer, now);
}

/// What is cut from now on has the size that is believed; what is too long for it goes again, in parts.
void Link::State::follow_mtu(Peer& peer, base::Instant now) {
  if (peer.mtu.wanted() != 0 && !peer.ack_hook.is_linked()) acks.push_back(peer);
  if (const base::Instant at = peer.mtu.due(); at != base::kNever) wake_by(peer, std::max(at, now + base::Duration(1)));
  const std::uint32_t size = peer.mtu.size() - peer.tag_bytes;
  if (size == peer.datagram_size) return;
  const bool is_lower = size < peer.datagram_size;
  ++(is_lower ? counters.sizes_lowered : counters.sizes_raised);
  peer.datagram_size = size;
  if (!is_lower) return;
  for (auto next = peer.in_flight.begin(); next != peer.in_flight.end();) {
    Segment& segment = *next++;
    if (segment.size > size) resend(segment, ResendCause::recut);
  }
}

void Link::State::serve_probe(Peer& peer, base::Instant now, Train& train) {
  static std::array<std::byte, wire::kDatagramSizeMost> nothing{};
  // A short one is its header alone, and so its tag makes it longer.
  const std::uint32_t wanted = peer.mtu.wanted();
  const std::uint32_t size = std::max(wanted - peer.tag_bytes, static_cast<std::uint32_t>(wire::kSegmentHeaderBytes));
  wire::Header header = header_with_ack(peer, now);
  header.kind = wire::Kind::probe;
  header.sequence = peer.mtu.number();
  wire::encode(header, control_bytes.data());
  const iovec rest{nothing.data(), size - wire::kSegmentHeaderBytes};
  const std::span head = std::span(control_bytes).first(wire::kSegmentHeaderBytes);
  wire::add_checksum(head, {&rest, 1});
  train.pieces[train.piece_count++] = {head.data(), head.size()};
  if (rest.iov_len != 0) train.pieces[train.piece_count++] = rest;
  train.to = peer.address;
  train.datagram_size = size;
  train.bytes = size;
  train.datagrams = 1;
  hand_out(HandedOut::What::probe, peer);
  handed_out.probe_bytes = wanted;
  peer.mtu.on_sent();
  settle_ack(peer);
  if (peer.ack.is_at_once || peer.mtu.wanted() != 0) {
    if (!peer.ack_hook.is_linked()) acks.push_back(peer);
  }
  ++counters.probes_sent;
  ++counters.trains_sent;
  ++counters.datagrams_sent;
  counters.bytes_sent += size;
  if (peer.sealed) seal_train(peer, now, train);
}

/// The next parts of a segment that waits to be sent again; it leaves the list with the last of them.
void Link::State::serve_parts(Segment& segment, const wire::Header& base, base::Instant now, std::uint32_t bytes_max,
                              std::uint32_t datagrams_max, Train& train) {
  const Peer& peer = *segment.peer;
  const std::uint32_t part_bytes = (peer.datagram_size - kPartHead) & ~7U;
  const auto payload = static_cast<std::uint32_t>(segment.size - wire::kSegmentHeaderBytes);
  const std::uint32_t count = (payload + part_bytes - 1) / part_bytes;
  if (segment.part_bytes != part_bytes) segment.parts_sent = 0;  // cut anew
  segment.part_bytes = part_bytes;
  handed_out.segment = &segment;
  handed_out.parts_before = segment.parts_sent;

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
    const std::span head(part_heads[train.datagrams]);
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
  counters.parts_sent += train.datagrams;
  counters.datagrams_sent += train.datagrams;
  counters.bytes_sent += train.bytes;
  if (train.datagrams == 1) train.datagram_size = train.bytes;
  if (segment.parts_sent < count) return;
  segment.parts_sent = 0;
  segment.hook.unlink();
  segment.is_waiting = false;
  note_transmission(segment, now);
}

void Link::State::on_probe(Peer& peer, const wire::Frame& frame) {
  ++counters.probes_received;
  // The newest are answered: an older one has been given up by now.
  peer.probes_to_answer[peer.probe_answers_owed % peer.probes_to_answer.size()] = frame.header.sequence;
  peer.probe_answers_owed =
      std::min<std::uint32_t>(peer.probe_answers_owed + 1, static_cast<std::uint32_t>(peer.probes_to_answer.size()));
  if (!peer.control_hook.is_linked()) control.push_back(peer);
}

void Link::State::on_probe_answer(Peer& peer, const wire::Frame& frame, base::Instant now) {
  ++counters.probe_answers_received;
  if (base::rare("link: a probe's answer is overheard")) return;
  peer.mtu.on_answer(frame.header.sequence, now);
  follow_mtu(peer, now);
}

void Link::State::on_part(Peer& peer, const wire::Frame& frame, base::Instant now) {
  if (peer.received.judge(frame.header.sequence) != ReceiveWindow::Verdict::fresh) return on_data(peer, frame, now);
  if (!peer.parts) peer.parts = std::make_unique<SegmentParts>(parts_room);
  const std::span<const std::byte> whole = peer.parts->add(frame.header.sequence, wire::read_part(frame.payload));
  counters.parts_dropped += parts_room.take_dropped();
  if (whole.empty()) {
    ++counters.parts_received;
    return;
  }
  if (!wire::is_run_of_records(whole)) return refuse(Refusal::bad_chunk);
  on_data(peer, {frame.header, whole}, now);
}

}  // namespace fairlead::link
