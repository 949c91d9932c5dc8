#include "qp/datagrams.hpp"

#include <cstring>

#include "qp/network_header.hpp"

namespace fairlead::qp {

using verbs::Cause;
using verbs::QpType;
using verbs::WcStatus;
namespace flags = wire::request_flags;

namespace {

wire::Envelope envelope_of(const QueuePair& pair, const SendEntry& entry) {
  const int imm = entry.traits().has_imm ? flags::imm : 0;
  const int solicited = entry.has(verbs::send_flags::solicited) ? flags::solicited : 0;
  return {.operation = wire::Operation::pair_datagram,
          .flags = static_cast<std::uint16_t>(imm | solicited | entry.traffic_class << flags::traffic_class_shift),
          .source_port = pair.number,
          .target_port = entry.remote_qpn,
          .key = entry.remote_qkey,
          .cookie = entry.imm};
}

}  // namespace

// Sending ------------------------------------------------------------------------------------------------------------

Datagrams::Sent Datagrams::send(QueuePair& pair, RequestNumber number, const GatherList& list) {
  const SendEntry& entry = pair.sends[number];
  const wire::Envelope envelope = envelope_of(pair, entry);
  if (shared_.is_here(entry.to)) {
    execute(envelope, shared_.address, list.pieces(), entry.length);
    return pair.state() == verbs::QpState::rts ? Sent::done : Sent::pair_ended;
  }
  if (shared_.transports == nullptr) return drop();
  if (shared_.transports->resolve(entry.to, shared_.now, pair.route.peer) != Status::ok) return drop();
  pair.route.has_peer = true;
  return submit(pair, number, envelope, list);
}

Datagrams::Sent Datagrams::drop() {
  ++shared_.counters.dropped_unreachable;
  return Sent::done;
}

Datagrams::Sent Datagrams::submit(QueuePair& pair, RequestNumber number, const wire::Envelope& envelope,
                                  const GatherList& list) {
  const bool is_copied = pair.sends[number].length <= shared_.bounds.copied_max;
  link::Outgoing message{.envelope = envelope, .pieces = {}, .size = pair.sends[number].length};
  message.wants_outcome = !is_copied;
  message.is_ordered = true;  // as on a wire: programs treat a gap as a loss
  const Status status = shared_.submit(pair, {pair.index, number, true}, message, list);
  if (status == Status::again) return Sent::no_room;
  if (status != Status::ok) return drop();
  if (is_copied) return Sent::done;
  ++pair.sends[number].flights;
  return Sent::in_flight;
}

// Receiving ----------------------------------------------------------------------------------------------------------

void Datagrams::take(const link::Delivery& delivery) {
  if (delivery.reassembly == link::Delivery::kWhole) {
    const iovec piece{const_cast<std::byte*>(delivery.bytes.data()), delivery.bytes.size()};
    return execute(delivery.envelope, shared_.transports->address(delivery.peer), {&piece, 1}, delivery.size);
  }
  if (judge(delivery.envelope, delivery.size) == nullptr) return;
  const std::uint32_t slot = arrivals_.open_datagram(delivery);
  if (slot != ReorderBuffer::kNone) take_chunk(slot, delivery);
}

void Datagrams::take_chunk(std::uint32_t slot, const link::Delivery& delivery) {
  const Arrival& arrival = arrivals_[slot];
  std::byte* const bytes = arrival.held.front().bytes.get();
  if (!delivery.bytes.empty()) std::memcpy(bytes + delivery.offset, delivery.bytes.data(), delivery.bytes.size());
  if (!delivery.is_last) return;
  const iovec piece{bytes, arrival.size};
  execute(arrival.envelope, shared_.transports->address(delivery.peer), {&piece, 1}, arrival.size);
  arrivals_.release_datagram(slot);
}

/// Returns the queue pair of a datagram, if it accepts it now. Checked before any part is stored, and again when all of
/// the datagram has arrived.
QueuePair* Datagrams::judge(const wire::Envelope& envelope, std::uint64_t size) {
  QueuePair* const pair = pairs_.find_number(wire::decode_pair_port(envelope.target_port).number);
  return takes(pair, static_cast<std::uint32_t>(envelope.key), size) ? pair : nullptr;
}

bool Datagrams::takes(const QueuePair* pair, std::uint32_t queue_key, std::uint64_t size) {
  const auto drop = [](std::uint64_t& counter) {
    ++counter;
    return false;
  };
  if (pair == nullptr || !pair->is(QpType::ud) || !pair->can_receive()) return drop(shared_.counters.refused_not_ready);
  if (queue_key != pair->attributes.qkey) return drop(shared_.counters.dropped_queue_key);
  const ReceiveQueue& queue = receives_[pair->receives];
  const std::uint64_t room = Executor::has_receive(*pair, queue) ? room_of(queue.front().sges) : 0;
  if (size > kBytesMost || room < kHeaderArea + size) return drop(shared_.counters.dropped_no_receive);
  return true;
}

void Datagrams::execute(const wire::Envelope& envelope, const base::SocketAddress& from, std::span<const iovec> source,
                        std::uint64_t size) {
  QueuePair* const pair = judge(envelope, size);
  if (pair == nullptr) return;
  const auto traffic_class = static_cast<std::uint8_t>(envelope.flags >> flags::traffic_class_shift);
  deliver(*pair,
          {.flags = envelope.flags,
           .imm = static_cast<std::uint32_t>(envelope.cookie),
           .source_number = wire::decode_pair_port(envelope.source_port).number,
           .from = from,
           .header = network_header(from, shared_.address, size, traffic_class),
           .header_kind = header_kind(from)},
          source, size);
}

void Datagrams::deliver(QueuePair& pair, const Arrived& arrived, std::span<const iovec> source, std::uint64_t size) {
  executor_.note_heard(pair);
  executor_.take_receive(pair, pair.receives);
  const Cause cause = place(pair, arrived.header, source);
  const std::uint64_t id = pair.current.receive_id;
  pair.current = {};
  ++shared_.counters.requests_executed;
  const bool is_well = cause == Cause::none;
  const bool has_imm = (arrived.flags & flags::imm) != 0;
  const base::SocketAddress& from = arrived.from;
  completer_.complete_receive(pair, id,
                              {.status = is_well ? WcStatus::success : WcStatus::loc_prot_err,
                               .opcode = verbs::WcOpcode::receive,
                               .vendor_err = static_cast<std::uint32_t>(cause),
                               .byte_len = static_cast<std::uint32_t>(kHeaderArea + size),
                               .imm = has_imm ? arrived.imm : 0,
                               .src_qp = arrived.source_number,
                               .wc_flags = verbs::wc_flags::grh | (has_imm ? verbs::wc_flags::with_imm : 0),
                               .slid = static_cast<std::uint16_t>(from.ip[14] << 8 | from.ip[15]),
                               .sl = arrived.header_kind},
                              (arrived.flags & flags::solicited) != 0);
  if (!is_well) completer_.enter_error(pair);
}

/// Copies header and payload to the receive that was taken.
Cause Datagrams::place(const QueuePair& pair, std::span<const std::byte> header, std::span<const iovec> source) {
  const std::uint32_t domain = receives_[pair.receives].domain();
  Cause cause = executor_.scatter(pair.current_sges(), domain, 0, header);
  std::uint64_t offset = header.size();
  for (const iovec& piece : source) {
    if (cause != Cause::none) break;
    const std::span bytes(static_cast<const std::byte*>(piece.iov_base), piece.iov_len);
    cause = executor_.scatter(pair.current_sges(), domain, offset, bytes);
    offset += piece.iov_len;
  }
  return cause;
}

}  // namespace fairlead::qp
