#pragma once
// One end of a flow: a queue pair's requester and responder (docs/flows.md).
//
// Requester. Requests have consecutive numbers since the flow was made ready to send; ring slot = number & mask (they
// may go round: the rings' sizes are powers of two):
//
//     head ........ next ........ tail        head: oldest not completed    next: to be sent next    tail: to be posted
//
// All before `acked` are acknowledged; a read or atomic also needs its answer (is_done). Completion is in order.
//
// Responder. Executes strictly in order: the request whose `turn` it is is the current one while its chunks arrive;
// those beyond are held (Waiting) within bounds, those before are duplicates.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <boost/intrusive/set.hpp>

#include <fairlead/verbs/queue_pair.hpp>

#include "base/slab.hpp"
#include "base/time.hpp"
#include "link/link.hpp"
#include "qp/flow_core.hpp"
#include "qp/flow_turn.hpp"

namespace fairlead::qp {

struct SendEntry {
  std::uint64_t id = 0;
  std::uint64_t remote_addr = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::uint64_t length = 0;
  base::SocketAddress to;  // UD
  std::uint32_t rkey = 0;
  std::uint32_t imm = 0;
  std::uint32_t remote_qpn = 0;   // UD
  std::uint32_t remote_qkey = 0;  // UD
  std::uint32_t flights = 0;      // submissions whose outcome has not come
  std::uint16_t sge_count = 0;
  verbs::SendOpcode opcode = verbs::SendOpcode::send;
  std::uint8_t flags = 0;
  std::uint8_t traffic_class = 0;
  verbs::WcStatus status = verbs::WcStatus::success;
  verbs::Cause cause = verbs::Cause::none;
  bool is_done = false;  // UC, UD: handed to the wire; read, atomic: answered
  bool is_sent = false;  // as a message, at least once

  bool is_read() const { return opcode >= verbs::SendOpcode::read; }  // waits for an answer of its own
  bool is_one_sided() const {
    return opcode == verbs::SendOpcode::write || is_read();
  }  // the peer's program has no part
  bool is_atomic() const { return opcode > verbs::SendOpcode::read; }
};

struct ReceiveEntry {
  std::uint64_t id = 0;
  std::uint32_t sge_count = 0;
};

/// Posted receives in order.
struct Pool {
  PoolPlan plan;
  std::uint32_t users = 0;
  std::uint32_t mask = 0;            // of the rings
  std::uint32_t head = 0, tail = 0;  // numbers; ring slot = number & mask
  bool is_limit_armed = false;
  std::vector<ReceiveEntry> entries;
  std::vector<verbs::Sge> sges;

  std::uint32_t count() const { return tail - head; }
  const ReceiveEntry& entry(std::uint32_t number) const { return entries[number & mask]; }
  std::span<const verbs::Sge> sges_of(std::uint32_t number) const {
    return {sges.data() + std::size_t{number & mask} * plan.sges, entry(number).sge_count};
  }
  void post(const verbs::ReceiveRequest& request) {
    const std::uint32_t at = tail++ & mask;
    entries[at] = {request.id, static_cast<std::uint32_t>(request.sges.size())};
    std::ranges::copy(request.sges, sges.begin() + static_cast<std::ptrdiff_t>(std::size_t{at} * plan.sges));
  }
  /// Room for as many as `plan` says; what is posted stays.
  void make_room() {
    const std::uint32_t size = std::bit_ceil(plan.depth), mask_before = mask;
    std::vector<ReceiveEntry> entries_before(size);
    std::vector<verbs::Sge> sges_before(std::size_t{size} * plan.sges);
    entries.swap(entries_before);
    sges.swap(sges_before);
    mask = size - 1;
    for (std::uint32_t number = head; number != tail; ++number) {
      const std::uint32_t from = number & mask_before, at = number & mask;
      entries[at] = entries_before[from];
      std::copy_n(sges_before.begin() + static_cast<std::ptrdiff_t>(std::size_t{from} * plan.sges), plan.sges,
                  sges.begin() + static_cast<std::ptrdiff_t>(std::size_t{at} * plan.sges));
    }
  }
};

inline constexpr std::uint64_t kFlowMessageMax = 1ULL << 30;  // bytes

/// Something that the link sends by reference: it holds the regions and the list until the outcome.
struct Flight {
  Flight() {}  // the arrays stay as they are: only `count` of them count
  std::uint32_t flow = 0;
  std::uint32_t number = 0;
  link::PeerHandle peer;
  bool is_request = false;  // else a read's answer
  std::uint32_t count = 0;
  std::array<iovec, 32> pieces;
  std::array<std::uint32_t, 32> regions;
};

/// A message that comes in chunks, or a request that came too early: it waits for its turn.
struct Waiting {
  static constexpr std::uint32_t kNone = ~0U;

  struct Piece {
    std::uint64_t offset = 0;
    std::size_t size = 0;
    std::unique_ptr<std::byte[]> bytes;
  };

  std::uint32_t flow = kNone;  // index; kNone: its chunks are thrown away
  std::uint32_t life = 0;      // answers: of the flow
  std::uint32_t sequence = 0;  // answers: the number of the request
  enum class Kind : std::uint8_t {
    request,
    answer,    // data of a read: placed at once
    datagram,  // UD: one piece, complete with the last chunk
  } kind = Kind::request;
  bool is_linked = false;  // further chunks come from the link
  wire::Envelope envelope;
  std::uint64_t size = 0;
  std::uint64_t bytes_held = 0;
  std::vector<Piece> held;
  std::uint32_t next = kNone, previous = kNone;  // of the flow, by sequence
};

struct Flow;
struct EarlierFlow {
  bool operator()(const Flow& a, const Flow& b) const;
};
using FlowTimerHook = boost::intrusive::set_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

struct Flow {
  FlowPlan plan;
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  std::uint32_t number = 0;
  std::uint32_t life = 0;
  verbs::QpAttributes attributes;  // `state` is the state
  std::uint32_t pool = base::Slab<int>::kNone;
  std::uint32_t receives_begin = 0;  // number of the first receive of this life
  bool is_closing = false;

  base::SocketAddress peer_address;
  link::PeerHandle peer;
  bool has_peer = false;
  bool is_local = false;

  // Requester.
  std::unique_ptr<SendEntry[]> entries;
  std::unique_ptr<verbs::Sge[]> sges;
  std::unique_ptr<std::byte[]> inlined;
  std::uint32_t mask = 0;  // of the rings
  std::uint32_t head = 0, next = 0, tail = 0;
  std::uint32_t begun = 0;  // all before were sent at least once
  std::uint32_t acked = 0;
  std::uint32_t first_sequence = 0;  // of number 0, if all had been sent as messages
  std::uint32_t answered_end = 0;    // behind the last message sent that the peer's program takes part in
  std::uint32_t unretired = 0;       // completed without an event since the last one
  std::uint32_t reads_out = 0;       // sent and not done
  std::uint32_t flights = 0;         // requests and answers the link still refers to
  std::uint8_t retries_left = 0, rnr_left = 0;
  bool is_paused = false;  // until resume_at
  bool is_lost = false;    // the peer is gone: it fails at resume_at, with this cause:
  verbs::Cause loss = verbs::Cause::none;
  bool is_stalled = false;  // the link had no room; in the list of those to try again
  bool is_pumping = false;
  bool wants_drained = false;
  base::Instant resume_at = base::kNever;
  base::Instant answer_due = base::kNever;  // RC: when to ask again
  base::Instant waits_since{};              // RC: when the oldest was sent, or the last answer came
  base::Instant not_ready_since = base::kNever;
  base::Duration not_ready_pause{};

  // Responder.
  FlowTurn turn;
  bool is_answer_owed = false;  // in the list of those who owe an acknowledgement
  bool has_heard = false;       // COMM_EST was told
  std::uint8_t requester_life = 0;
  base::Instant gap_due = base::kNever;                                         // UC: when what is missing is given up
  std::uint32_t first_arrival = Waiting::kNone, last_arrival = Waiting::kNone;  // that wait for their turn
  std::uint32_t arrivals = 0;
  std::uint64_t held_bytes = 0;
  bool has_dropped = false;  // some found no room; the first of them
  std::uint32_t dropped_first = 0;

  struct Current {
    bool is_active = false;  // the request whose turn it is has begun
    bool has_receive = false;
    std::uint32_t arrival = Waiting::kNone;
    wire::Envelope envelope;
    std::uint64_t size = 0;
    std::uint64_t left = 0;
    std::byte last{};  // of a write: stored when all else is
    std::uint64_t receive_id = 0;
    std::uint32_t receive_sges = 0;
  } current;
  std::vector<verbs::Sge> receive_sges;  // of the receive in use

  struct AtomicResult {
    std::uint32_t sequence = 0;
    std::uint64_t value = 0;
    bool is_used = false;
  };
  std::array<AtomicResult, 16> atomics;  // for duplicates
  std::uint32_t atomics_next = 0;

  // Timer: an entry may be early, never late.
  FlowTimerHook timer_hook;
  base::Instant timer_at = base::kNever;

  SendEntry& entry(std::uint32_t request) { return entries[request & mask]; }
  std::span<verbs::Sge> sges_of(std::uint32_t request) {
    const std::uint32_t most = plan.capacity.max_send_sge;
    return {sges.get() + std::size_t{request & mask} * most, entry(request).sge_count};
  }
  std::byte* inlined_of(std::uint32_t request) {
    return inlined.get() + std::size_t{request & mask} * plan.capacity.max_inline;
  }
  verbs::QpState state() const { return attributes.state; }
  bool can_receive() const { return state() >= verbs::QpState::rtr && state() <= verbs::QpState::sqe; }
};

inline bool EarlierFlow::operator()(const Flow& a, const Flow& b) const {
  return a.timer_at < b.timer_at;
}
using FlowTimers =
    boost::intrusive::multiset<Flow, boost::intrusive::member_hook<Flow, FlowTimerHook, &Flow::timer_hook>,
                               boost::intrusive::compare<EarlierFlow>, boost::intrusive::constant_time_size<false>>;

}  // namespace fairlead::qp
