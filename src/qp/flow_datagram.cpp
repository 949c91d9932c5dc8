// UD: datagrams to anybody, without a promise. One that finds no receive, or one too small, is dropped and the receive
// stays. Sending completes when the link has taken the bytes.

#include <algorithm>
#include <array>
#include <cstring>

#include "base/scatter.hpp"
#include "qp/flows.hpp"

namespace fairlead::qp {

using verbs::Cause;
using verbs::QpType;
using verbs::WcStatus;

namespace {

constexpr std::size_t kHeaderArea = 40;
constexpr std::uint32_t kMulticast = 0xFF'FFFF;

void store_16(std::byte* to, std::uint32_t value) {
  to[0] = static_cast<std::byte>(value >> 8);
  to[1] = static_cast<std::byte>(value);
}

/// What a RoCE v2 device puts before the data: an IPv6 header, or an IPv4 header in the last 20 bytes.
std::array<std::byte, kHeaderArea> network_header(const base::SocketAddress& from, const base::SocketAddress& to,
                                                  std::uint64_t size, std::uint8_t traffic_class) {
  std::array<std::byte, kHeaderArea> header{};
  constexpr std::uint8_t kUdp = 17, kHopLimit = 64;
  if (from.is_v4()) {
    std::byte* ip = header.data() + 20;
    ip[0] = std::byte{0x45};
    ip[1] = std::byte{traffic_class};
    store_16(ip + 2, static_cast<std::uint32_t>(20 + size));
    ip[6] = std::byte{0x40};
    ip[8] = std::byte{kHopLimit};
    ip[9] = std::byte{kUdp};
    std::memcpy(ip + 12, from.ip.data() + 12, 4);
    std::memcpy(ip + 16, to.ip.data() + 12, 4);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < 20; i += 2) {
      sum += std::to_integer<std::uint32_t>(ip[i]) << 8 | std::to_integer<std::uint32_t>(ip[i + 1]);
    }
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    store_16(ip + 10, ~sum);
    return header;
  }
  header[0] = static_cast<std::byte>(0x60 | traffic_class >> 4);
  header[1] = static_cast<std::byte>(traffic_class << 4);
  store_16(header.data() + 4, static_cast<std::uint32_t>(size));
  header[6] = std::byte{kUdp};
  header[7] = std::byte{kHopLimit};
  std::memcpy(header.data() + 8, from.ip.data(), 16);
  std::memcpy(header.data() + 24, to.ip.data(), 16);
  return header;
}

}  // namespace

bool Flows::start_datagram(Flow& flow, std::uint32_t number, base::Instant now) {
  SendEntry& entry = flow.entry(number);
  if (entry.length > kDatagramMax) return refuse_start(flow, entry, WcStatus::loc_len_err, Cause::too_long);
  std::array<iovec, 32> pieces;
  std::array<std::uint32_t, 32> regions;
  std::uint32_t count = 0;
  if (const Cause cause = gather(flow, number, pieces.data(), regions.data(), count); cause != Cause::none) {
    return refuse_start(flow, entry, WcStatus::loc_prot_err, cause);
  }
  const bool has_imm = entry.opcode == verbs::SendOpcode::send_imm;
  const wire::Envelope envelope{
      .operation = wire::Operation::flow_datagram,
      .flags = static_cast<std::uint16_t>((has_imm ? Flags::kImm : 0) |
                                          ((entry.flags & verbs::send_flags::solicited) != 0 ? Flags::kSolicited : 0) |
                                          entry.traffic_class << Flags::kTrafficClassShift),
      .source_port = flow.number,
      .target_port = entry.remote_qpn,
      .key = entry.remote_qkey,
      .cookie = entry.imm,
  };
  Status status = Status::ok;
  bool is_done = true;
  if (entry.remote_qpn == kMulticast) {
    ++counters_.dropped_unreachable;
  } else if (is_here(entry.to)) {
    on_datagram(envelope, address_, {pieces.data(), count}, entry.length);
    if (flow.state() != verbs::QpState::rts) return false;
  } else if (!transports_) {
    ++counters_.dropped_unreachable;
  } else if (transports_->resolve(entry.to, now, flow.peer) != Status::ok) {
    ++counters_.dropped_unreachable;
  } else {
    flow.has_peer = true;
    link::Outgoing message{.envelope = envelope, .pieces = {pieces.data(), count}, .size = entry.length};
    if (entry.length <= bounds_.copied_max) {
      message.cookie = 0;
      message.wants_outcome = false;
      status = transports_->submit(flow.peer, message, now);
    } else {
      const std::uint32_t slot = flights_.acquire();
      if (slot == kNone) {
        stall(flow);
        return false;
      }
      Flight& flight = flights_[slot];
      flight.flow = flow.index;
      flight.number = number;
      flight.peer = flow.peer;
      flight.is_request = true;
      flight.count = count;
      std::copy_n(pieces.begin(), count, flight.pieces.begin());
      std::copy_n(regions.begin(), count, flight.regions.begin());
      message.pieces = {flight.pieces.data(), count};
      message.cookie = static_cast<std::uint64_t>(flights_.generation(slot)) << 32 | kOurs | slot;
      status = transports_->submit(flow.peer, message, now);
      if (status != Status::ok) {
        flights_.release(slot);
      } else {
        for (std::uint32_t i = 0; i < count; ++i) {
          if (regions[i] != kNone) regions_.hold(regions[i]);
        }
        ++flow.flights;
        ++entry.flights;
        is_done = false;
      }
    }
    if (status == Status::again) {
      stall(flow);
      return false;
    }
    if (status != Status::ok) ++counters_.dropped_unreachable;
  }
  ++counters_.requests_sent;
  ++flow.next;
  if (is_done) {
    entry.is_done = true;
    complete_in_order(flow, now);
  }
  return true;
}

// All datagrams together have what one flow may hold. What is longer than a datagram in chunks may be is one message of
// the link all the same: its later chunks have no target and are thrown away.
void Flows::start_datagram_chunked(const link::Delivery& delivery) {
  if (judge_datagram(delivery.envelope, delivery.size) == nullptr) return;
  const std::uint64_t most = bounds_.early_max;
  const bool has_room =
      held_bytes_ + delivery.size <= most && datagram_bytes_ + delivery.size <= most / 4 && delivery.size != 0;
  const std::uint32_t slot = has_room ? arrivals_.acquire(Waiting::Kind::datagram) : kNone;
  if (slot == kNone) {
    ++counters_.refused_no_room;
    return;
  }
  Waiting& arrival = arrivals_[slot];
  arrival.envelope = delivery.envelope;
  arrival.size = arrival.bytes_held = delivery.size;
  arrival.held.push_back({0, delivery.size, std::make_unique<std::byte[]>(delivery.size)});
  held_bytes_ += delivery.size;
  datagram_bytes_ += delivery.size;
  transports_->set_target(delivery.peer, delivery.reassembly, target_of(slot));
  on_datagram_chunk(slot, delivery);
}

void Flows::drop_datagram(std::uint32_t slot) {
  held_bytes_ -= arrivals_[slot].bytes_held;
  datagram_bytes_ -= arrivals_[slot].bytes_held;
  arrivals_.release(slot);
}

void Flows::on_datagram_chunk(std::uint32_t slot, const link::Delivery& delivery) {
  Waiting& arrival = arrivals_[slot];
  std::byte* bytes = arrival.held.front().bytes.get();
  if (!delivery.bytes.empty()) std::memcpy(bytes + delivery.offset, delivery.bytes.data(), delivery.bytes.size());
  if (!delivery.is_last) return;
  const iovec piece{bytes, arrival.size};
  on_datagram(arrival.envelope, transports_->address(delivery.peer), {&piece, 1}, arrival.size);
  drop_datagram(slot);
}

/// Whose it is, if he takes it now: asked before anything is kept of it, and again when all of it is here.
Flow* Flows::judge_datagram(const wire::Envelope& envelope, std::uint64_t size) {
  Flow* flow = find_number(envelope.target_port & 0xFF'FFFF);
  if (flow == nullptr || flow->plan.type != QpType::ud || !flow->can_receive()) {
    ++counters_.refused_not_ready;
    return nullptr;
  }
  if (static_cast<std::uint32_t>(envelope.key) != flow->attributes.qkey) {
    ++counters_.dropped_queue_key;
    return nullptr;
  }
  const Pool& pool = pools_[flow->pool];
  std::uint64_t room = 0;
  if (pool.head != pool.tail) {
    for (const verbs::Sge& sge : pool.sges_of(pool.head)) room += sge.length;
  }
  if (size > kDatagramMax || room < kHeaderArea + size) {
    ++counters_.dropped_no_receive;
    return nullptr;
  }
  return flow;
}

void Flows::on_datagram(const wire::Envelope& envelope, const base::SocketAddress& from, std::span<const iovec> source,
                        std::uint64_t size) {
  Flow* const flow = judge_datagram(envelope, size);
  if (flow == nullptr) return;
  const Pool& pool = pools_[flow->pool];
  if (!flow->has_heard) {
    flow->has_heard = true;
    if (flow->state() == verbs::QpState::rtr) tell(*flow, verbs::AsyncEventType::comm_est);
  }
  take_receive(*flow);
  const std::uint64_t id = flow->current.receive_id;
  const auto sges = std::span(flow->receive_sges).first(flow->current.receive_sges);
  flow->current = {};
  const auto traffic_class = static_cast<std::uint8_t>(envelope.flags >> Flags::kTrafficClassShift);
  const auto header = network_header(from, address_, size, traffic_class);
  Cause cause = scatter(sges, pool.plan.domain, 0, header);
  std::uint64_t offset = kHeaderArea;
  for (const iovec& piece : source) {
    if (cause == Cause::none) {
      cause = scatter(sges, pool.plan.domain, offset, {static_cast<const std::byte*>(piece.iov_base), piece.iov_len});
    }
    offset += piece.iov_len;
  }
  ++counters_.requests_executed;
  const bool is_well = cause == Cause::none;
  const bool has_imm = (envelope.flags & Flags::kImm) != 0;
  complete_receive(*flow, id,
                   {.status = is_well ? WcStatus::success : WcStatus::loc_prot_err,
                    .opcode = verbs::WcOpcode::receive,
                    .vendor_err = static_cast<std::uint32_t>(cause),
                    .byte_len = static_cast<std::uint32_t>(kHeaderArea + size),
                    .imm = has_imm ? static_cast<std::uint32_t>(envelope.cookie) : 0,
                    .src_qp = envelope.source_port & 0xFF'FFFF,
                    .wc_flags = verbs::wc_flags::grh | (has_imm ? verbs::wc_flags::with_imm : 0),
                    .slid = static_cast<std::uint16_t>(from.ip[14] << 8 | from.ip[15])},
                   (envelope.flags & Flags::kSolicited) != 0);
  if (!is_well) enter_error(*flow);
}

}  // namespace fairlead::qp
