// The straight line of short sends of reliable flows inside a host: from the request just posted into the peer's ring,
// and from the ring into the first posted receive and its completion. What is not straight (anything waits, was sent
// before or is wrong; several pieces; no receive, or one that does not suit) goes the general way, which knows all
// cases: a message is the same in the ring whichever way it was sent, and its turn is told by its sequence.

#include <algorithm>

#include "base/copy_short.hpp"
#include "qp/flows.hpp"

namespace fairlead::qp {

using verbs::QpState;
using verbs::QpType;
using verbs::SendOpcode;

// Sending ------------------------------------------------------------------------------------------------------------

/// All that is posted and has not been sent; false if something is left.
bool Flows::start_near(Flow& flow, base::Instant now) {
  // What was begun and comes again is looked up in the general way: it may be acknowledged already.
  const bool is_straight = flow.plan.type == QpType::rc && flow.state() == QpState::rts && flow.next == flow.begun &&
                           !flow.is_paused && !flow.is_pumping && flow.has_peer && !flow.is_local &&
                           shm::Transport::has(flow.peer);
  if (!is_straight) return false;
  const std::uint64_t bytes_max = bounds_.copied_max;
  wire::ShmHead head{.kind = wire::ShmKind::ordered,
                     .operation = static_cast<std::uint8_t>(wire::Operation::flow_send),
                     .source_port = flow.number | (flow.life & 0xFF) << 24,
                     .target_port = flow.attributes.dest_qp_num};
  while (flow.next != flow.tail) {
    const std::uint32_t number = flow.next;
    SendEntry& entry = flow.entry(number);
    if (entry.opcode != SendOpcode::send || (entry.flags & verbs::send_flags::fence) != 0 || entry.sge_count > 1 ||
        entry.length > bytes_max) [[unlikely]]
      return false;
    const std::byte* from = nullptr;
    if (entry.sge_count != 0 && entry.length != 0) {
      const verbs::Sge& sge = flow.sges_of(number)[0];
      from = regions_.locate(sge.lkey, flow.plan.domain, sge.addr, sge.length, 0).at();
      if (from == nullptr) [[unlikely]]
        return false;
    } else {
      from = flow.inlined_of(number);
    }
    wire::ShmOrdered turn{.key = flow.first_sequence + number};
    head.flags = (entry.flags & verbs::send_flags::solicited) != 0 ? Flags::kSolicited : std::uint16_t{0};
    if (flow.is_answer_owed) {
      head.flags |= Flags::kAcknowledges;
      head.target_port |= static_cast<std::uint32_t>(flow.requester_life) << 24;
      turn.a = flow.turn.next() - 1;
    }
    if (!shm_transport()->send_turn(flow.peer, head, turn, {from, entry.length}, embedded_cookie(flow.index, number),
                                    now)) [[unlikely]]
      return false;
    flow.is_answer_owed = false;
    ++counters_.requests_sent;
    ++counters_.straight_sends;
    ++flow.flights;
    entry.flights = 1;
    entry.is_sent = true;
    flow.answered_end = number + 1;
    if (flow.head == number) await(flow, now);
    flow.begun = ++flow.next;
  }
  set_timer(flow, due(flow));
  return true;
}

void Flows::end_near(std::uint64_t cookie, base::Instant now) {
  now_ = now;
  Flow& flow = *flows_[static_cast<std::uint32_t>(cookie & ~(kOurs | kEmbedded))];
  const auto number = static_cast<std::uint32_t>(cookie >> 32);
  --flow.flights;
  if (number - flow.head >= flow.tail - flow.head) return;
  SendEntry& entry = flow.entry(number);
  if (entry.flights == 0) return;
  --entry.flights;
  if (number == flow.head && number != flow.next) flow.answer_due = now + answer_patience(flow);
}

// Receiving ----------------------------------------------------------------------------------------------------------

bool Flows::arrive_near(link::PeerHandle from, const wire::ShmHead& head, const wire::ShmOrdered& turn,
                        std::span<const std::byte> bytes, base::Instant now) {
  now_ = now;
  constexpr std::uint32_t kNumber = 0xFF'FFFF;
  if (head.operation != static_cast<std::uint8_t>(wire::Operation::flow_send) || head.status != 0 ||
      (head.flags & ~(Flags::kAcknowledges | Flags::kSolicited)) != 0) [[unlikely]]
    return false;
  Flow* found = find_number(head.target_port & kNumber);
  if (found == nullptr) [[unlikely]]
    return false;
  Flow& flow = *found;
  // Whom it is connected to was compared with where this peer is when its first request came.
  const bool is_connected = flow.plan.type == QpType::rc && flow.can_receive() && flow.has_heard && flow.has_peer &&
                            flow.peer == from && flow.attributes.dest_qp_num == (head.source_port & kNumber);
  if (!is_connected || turn.key != flow.turn.next() || flow.current.is_active || flow.current.has_receive ||
      flow.first_arrival != Waiting::kNone || flow.has_dropped) [[unlikely]]
    return false;
  flow.requester_life = static_cast<std::uint8_t>(head.source_port >> 24);
  if ((head.flags & Flags::kAcknowledges) != 0) {
    take_carried_answer(flow, head.target_port, turn.a, now);
    // A completion may have found no room, and ended it.
    if (!flow.can_receive()) [[unlikely]]
      return false;
  }
  Pool& pool = pools_[flow.pool];
  if (pool.head == pool.tail || pool.is_limit_armed) [[unlikely]]
    return false;
  const ReceiveEntry& receive = pool.entry(pool.head);
  if (!bytes.empty()) {
    if (receive.sge_count != 1) [[unlikely]]
      return false;
    const verbs::Sge& sge = pool.sges_of(pool.head)[0];
    if (bytes.size() > sge.length) [[unlikely]]
      return false;
    const Permit place =
        regions_.locate(sge.lkey, pool.plan.domain, sge.addr, bytes.size(), verbs::access::local_write);
    if (place.is_refused()) [[unlikely]]
      return false;
    place.write_short(bytes);
  }
  ++pool.head;
  flow.turn.pass();
  ++counters_.requests_executed;
  ++counters_.straight_arrivals;
  tell_receive(flow, (head.flags & Flags::kSolicited) != 0, [&](void* place) {
    new (place) FlowEvent{.completion = {.wr_id = receive.id,
                                         .opcode = verbs::WcOpcode::receive,
                                         .byte_len = static_cast<std::uint32_t>(bytes.size()),
                                         .qp_num = flow.number,
                                         .timestamp_ns = timestamp()},
                          .life = flow.life,
                          .retires = retires_of_receive(flow)};
  });
  owe_answer(flow);
  return true;
}

}  // namespace fairlead::qp
