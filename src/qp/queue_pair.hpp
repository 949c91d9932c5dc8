#pragma once
// A queue pair (docs/queue-pairs.md): what its requester and its responder have to remember. Who acts on it: Requester,
// Outstanding and OneSided on the one, Responder, Executor and Answers on the other, Datagrams on those of UD, and
// Completer on all.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/time.hpp"
#include "link/link.hpp"
#include "qp/arrival.hpp"
#include "qp/atomic_results.hpp"
#include "qp/pair_core.hpp"
#include "qp/pair_timers.hpp"
#include "qp/receive_queue.hpp"
#include "qp/request_turn.hpp"
#include "qp/send_queue.hpp"
#include "wire/pair_words.hpp"

namespace fairlead::qp {

inline constexpr std::uint64_t kMessageMax = 1ULL << 30;  // bytes

/// The other end, as far as it is known.
struct PairRoute {
  base::SocketAddress address;
  link::PeerHandle peer;
  bool has_peer = false;         // the handle was right once
  bool is_local = false;         // in this engine
  bool is_proven = false;        // something of the other end has come since it was connected
  std::uint8_t incarnation = 0;  // of the other end, as its last request told
};

/// How long the requester still waits, and for what.
struct Patience {
  std::uint8_t retries_left = 0, rnr_left = 0;
  bool is_paused = false;  // until resume_at
  bool is_lost = false;    // the peer is gone: it fails at resume_at, with this cause:
  verbs::Cause loss = verbs::Cause::none;
  base::Instant resume_at = base::kNever;
  base::Instant answer_due = base::kNever;  // RC: when to ask again
  base::Instant waits_since{};              // RC: when the oldest was sent, or the last answer came
  base::Instant not_ready_since = base::kNever;
  base::Duration not_ready_pause{};

  void begin(const verbs::QpAttributes& attributes) {
    retries_left = attributes.retry_cnt;
    rnr_left = attributes.rnr_retry;
  }
  void pause(base::Instant until) {
    is_paused = true;
    resume_at = until;
  }
};

/// The request whose turn it is.
struct CurrentRequest {
  bool is_active = false;  // it has begun
  bool has_receive = false;
  std::uint32_t arrival = Arrival::kNone;
  wire::Envelope envelope;
  std::uint64_t size = 0;
  std::uint64_t left = 0;
  std::byte last{};        // of a write: stored when all else is
  std::uint64_t word = 0;  // of an atomic write: all of it
  /// `offset` and its bytes are within the word.
  void keep_word(std::uint64_t offset, std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(&word, 1)).subspan(offset, bytes.size()).begin());
  }
  std::uint64_t receive_id = 0;
  std::uint32_t receive_sges = 0;
  std::uint32_t queue = 0;  // where its receive comes from

  bool is(wire::Operation operation) const { return envelope.operation == operation; }
};

/// Requests that came before their turn, by sequence.
struct ArrivalChain {
  std::uint32_t first = Arrival::kNone, last = Arrival::kNone;
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
  bool has_dropped = false;  // some found no room; the first of them
  wire::RequestSequence dropped_first;

  bool is_empty() const { return first == Arrival::kNone; }
};

struct QueuePair {
  QueuePair(const PairPlan& its_plan, std::uint32_t its_index, std::uint32_t its_generation)
      : plan(its_plan),
        index(its_index),
        generation(its_generation),
        timer{.hook = {}, .pair = its_index},
        queue_mask(its_plan.end == PairEnd::initiator ? ~0U : 0),
        sends(its_plan.capacity) {}

  PairPlan plan;
  std::uint32_t index, generation;
  std::uint32_t number = 0;
  std::uint32_t incarnation = 0;
  verbs::QpAttributes attributes;  // `state` is the state
  bool is_closing = false;
  PairRoute route;
  std::uint32_t flights = 0;  // requests and answers the transports still refer to
  PairTimer timer;

  // Requester.
  std::uint32_t queue_mask;  // 0 if requests name no shared receive queue
  SendQueue sends;
  Patience patience;
  bool is_stalled = false;  // the link had no room; in the list of those to try again
  bool wants_drained = false;

  // Responder.
  std::uint32_t receives = base::Slab<int>::kNone;  // its queue
  ReceiveNumber receives_begin;                     // the first receive of this incarnation
  RequestTurn turn;
  CurrentRequest current;
  std::vector<verbs::Sge> receive_sges;  // of the receive in use
  AtomicResults atomics;
  ArrivalChain early;
  bool is_answer_owed = false;           // in the list of those who owe an acknowledgement
  bool has_heard = false;                // COMM_EST was told
  base::Instant gap_due = base::kNever;  // UC: when what is missing is given up

  verbs::QpState state() const { return attributes.state; }
  bool is(verbs::QpType type) const { return plan.type == type; }
  bool can_receive() const { return state() >= verbs::QpState::rtr && state() <= verbs::QpState::sqe; }
  bool can_ask() const { return state() == verbs::QpState::rts || state() == verbs::QpState::sqd; }

  wire::PairPort port() const { return {number, static_cast<std::uint8_t>(incarnation)}; }
  /// The other end, when it is answered.
  wire::PairPort peer_port() const { return {attributes.dest_qp_num, route.incarnation}; }
  std::span<const verbs::Sge> current_sges() const { return {receive_sges.data(), current.receive_sges}; }

  base::Duration answer_patience() const {
    constexpr base::Duration kLeast = std::chrono::milliseconds(50), kWithoutTimeout = std::chrono::seconds(1);
    if (attributes.timeout == 0) return kWithoutTimeout;
    return std::max(kLeast, base::Duration(std::chrono::nanoseconds(4096LL << attributes.timeout)));
  }
  void await(base::Instant now) {
    patience.waits_since = now;
    patience.answer_due = now + answer_patience();
  }
  /// When it wants to be looked at; kNever if it waits for nothing.
  base::Instant due() const {
    base::Instant at = gap_due;
    if (!can_ask()) return at;
    if (patience.is_paused) return std::min(at, patience.resume_at);
    if (is(verbs::QpType::rc) && sends.is_any_out()) at = std::min(at, patience.answer_due);
    return at;
  }
};

}  // namespace fairlead::qp
