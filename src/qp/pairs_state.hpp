#pragma once
// The state of an engine's queue pairs for the next program in this process (PairsHandover). Nothing is in flight.
// Memory, completion streams and notice streams are not part of it; the owner of the queue pairs supplies them again.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/saved.hpp"
#include "qp/queue_pair.hpp"
#include "wire/saved_fields.hpp"

namespace fairlead::verbs {

template <typename Archive>
void fields(Archive& archive, Sge& sge) {
  archive(sge.addr, sge.length, sge.lkey);
}
template <typename Archive>
void fields(Archive& archive, QpCapacity& capacity) {
  archive(capacity.max_send_wr, capacity.max_recv_wr, capacity.max_send_sge, capacity.max_recv_sge,
          capacity.max_inline);
}
template <typename Archive>
void fields(Archive& archive, AddressVector& vector) {
  for (std::uint8_t& part : vector.dgid) archive(part);
  archive(vector.flow_label, vector.dlid, vector.sgid_index, vector.hop_limit, vector.traffic_class, vector.sl,
          vector.src_path_bits, vector.static_rate, vector.is_global, vector.port_num);
}
template <typename Archive>
void fields(Archive& archive, QpAttributes& one) {
  archive(one.state, one.cur_state, one.path_mtu, one.path_mig_state, one.qkey, one.rq_psn, one.sq_psn, one.dest_qp_num,
          one.access_flags, one.av, one.alt_av, one.pkey_index, one.en_sqd_async_notify, one.is_sq_draining,
          one.max_rd_atomic, one.max_dest_rd_atomic, one.min_rnr_timer, one.port_num, one.timeout, one.retry_cnt,
          one.rnr_retry, one.alt_port_num, one.alt_timeout);
}

}  // namespace fairlead::verbs

namespace fairlead::qp {

/// Consecutive slots of a list.
struct SlotRun {
  std::uint32_t first = 0, count = 0;
};

/// A region, or a window.
struct RegionState {
  std::uint32_t slot = 0;
  verbs::WindowType type{};  // of a window
  std::uint32_t domain = 0, access = 0;
  std::uint64_t iova = 0;
  // Of a window that is bound:
  bool is_bound = false;
  std::uint32_t region = 0, pair = 0;
  std::uint64_t offset = 0, length = 0;  // in the region
};

struct RegionsState {
  std::vector<std::uint8_t> variants;  // by slot
  std::vector<SlotRun> free;           // in the order of their next use
  std::vector<RegionState> used;
};

struct ReceiveState {
  std::uint64_t id = 0;
  std::vector<verbs::Sge> sges;
};

struct ReceiveQueueState {
  std::uint32_t slot = 0;
  std::uint32_t depth = 0, sges = 0, domain = 0, limit = 0;
  bool is_limit_armed = false;
  ReceiveNumber head;
  std::vector<ReceiveState> posted;
};

struct SendState {
  SendEntry entry;
  std::vector<verbs::Sge> sges;
  std::vector<std::byte> inlined;
};

struct SendQueueState {
  RequestNumber head, next, begun, acked, answered_end;
  wire::RequestSequence first_sequence;
  std::uint32_t unretired = 0, reads_out = 0;
  std::vector<SendState> posted;
};

struct ArrivalPieceState {
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes;
};

struct ArrivalState {
  std::uint32_t slot = 0, pair = 0, incarnation = 0;
  wire::RequestSequence sequence;
  Arrival::Kind kind = Arrival::Kind::request;
  bool is_linked = false;
  wire::Envelope envelope;
  std::uint64_t size = 0;
  std::vector<ArrivalPieceState> held;
};

struct PairState {
  std::uint32_t index = 0, receives = 0, stream = 0;  // pairs with the same stream have the same number
  verbs::QpType type = verbs::QpType::rc;
  verbs::QpCapacity capacity;
  bool signals_all = false, has_shared_receives = false;
  std::uint32_t domain = 0;
  std::uint32_t incarnation = 0, sends_retired = 0, receives_retired = 0;
  verbs::QpAttributes attributes;
  PairRoute route;
  SendQueueState sends;
  Patience patience;
  bool wants_drained = false;
  ReceiveNumber receives_begin;
  RequestTurn turn;
  CurrentRequest current;
  std::vector<verbs::Sge> receive_sges;
  AtomicResults atomics;
  std::vector<std::uint32_t> early;  // slots of arrivals, in order
  bool has_dropped = false;
  wire::RequestSequence dropped_first;
  bool is_answer_owed = false, has_heard = false;
  base::Instant gap_due = base::kNever;
};

/// An answer that waits.
struct PairAnswerState {
  link::PeerHandle peer;
  wire::Envelope envelope;
  std::uint32_t pair = 0, incarnation = 0;
};

struct PairsState {
  RegionsState regions;
  std::vector<std::uint64_t> queue_names, arrival_names;  // base::Slab::names()
  std::vector<std::uint32_t> generations, incarnations;   // by index
  std::vector<SlotRun> free;                              // indices, in the order of their next use
  std::vector<ReceiveQueueState> queues;
  std::vector<ArrivalState> arrivals;
  std::vector<PairState> pairs;
  std::vector<PairAnswerState> answers;
};

template <typename Archive>
void fields(Archive& archive, SlotRun& run) {
  archive(run.first, run.count);
}
template <typename Archive>
void fields(Archive& archive, RegionState& one) {
  archive(one.slot, one.type, one.domain, one.access, one.iova, one.is_bound, one.region, one.pair, one.offset,
          one.length);
}
template <typename Archive>
void fields(Archive& archive, RegionsState& regions) {
  archive(regions.variants, regions.free, regions.used);
}
template <typename Archive>
void fields(Archive& archive, ReceiveState& receive) {
  archive(receive.id, receive.sges);
}
template <typename Archive>
void fields(Archive& archive, ReceiveQueueState& queue) {
  archive(queue.slot, queue.depth, queue.sges, queue.domain, queue.limit, queue.is_limit_armed, queue.head,
          queue.posted);
}
template <typename Archive>
void fields(Archive& archive, SendEntry& entry) {
  archive(entry.id, entry.remote_addr, entry.compare_add, entry.swap, entry.length, entry.copied, entry.to, entry.rkey,
          entry.imm, entry.remote_qpn, entry.remote_qkey, entry.opcode, entry.flags, entry.traffic_class,
          entry.hop_limit, entry.status, entry.cause, entry.is_done, entry.is_sent);
}
template <typename Archive>
void fields(Archive& archive, SendState& send) {
  archive(send.entry, send.sges, send.inlined);
}
template <typename Archive>
void fields(Archive& archive, SendQueueState& sends) {
  archive(sends.head, sends.next, sends.begun, sends.acked, sends.answered_end, sends.first_sequence, sends.unretired,
          sends.reads_out, sends.posted);
}
template <typename Archive>
void fields(Archive& archive, ArrivalPieceState& piece) {
  archive(piece.offset, piece.bytes);
}
template <typename Archive>
void fields(Archive& archive, ArrivalState& arrival) {
  archive(arrival.slot, arrival.pair, arrival.incarnation, arrival.sequence, arrival.kind, arrival.is_linked,
          arrival.envelope, arrival.size, arrival.held);
}
template <typename Archive>
void fields(Archive& archive, PairRoute& route) {
  archive(route.address, route.peer.slot, route.peer.generation, route.has_peer, route.is_local, route.is_proven,
          route.incarnation);
}
template <typename Archive>
void fields(Archive& archive, Patience& patience) {
  archive(patience.retries_left, patience.rnr_left, patience.is_paused, patience.is_lost, patience.loss,
          patience.resume_at, patience.answer_due, patience.waits_since, patience.not_ready_since,
          patience.not_ready_pause);
}
template <typename Archive>
void fields(Archive& archive, CurrentRequest& current) {
  archive(current.is_active, current.has_receive, current.arrival, current.envelope, current.size, current.left,
          current.last, current.word, current.receive_id, current.receive_sges, current.queue);
}
template <typename Archive>
void fields(Archive& archive, PairState& pair) {
  archive(pair.index, pair.receives, pair.stream, pair.type, pair.capacity, pair.signals_all, pair.has_shared_receives,
          pair.domain, pair.incarnation, pair.sends_retired, pair.receives_retired, pair.attributes, pair.route,
          pair.sends, pair.patience, pair.wants_drained, pair.receives_begin, pair.turn, pair.current,
          pair.receive_sges, pair.atomics, pair.early, pair.has_dropped, pair.dropped_first, pair.is_answer_owed,
          pair.has_heard, pair.gap_due);
}
template <typename Archive>
void fields(Archive& archive, PairAnswerState& answer) {
  archive(answer.peer.slot, answer.peer.generation, answer.envelope, answer.pair, answer.incarnation);
}
template <typename Archive>
void fields(Archive& archive, PairsState& pairs) {
  archive(pairs.regions, pairs.queue_names, pairs.arrival_names, pairs.generations, pairs.incarnations, pairs.free,
          pairs.queues, pairs.arrivals, pairs.pairs, pairs.answers);
}

}  // namespace fairlead::qp
