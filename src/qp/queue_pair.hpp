#pragma once
// A queue pair (docs/queue-pairs.md): the state of its requester and its responder. Requester, Outstanding and OneSided
// work on the first; Responder, Executor and Answers on the second. Datagrams serves UD queue pairs, Completer all.

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

/// What is known about the other end.
struct PairRoute {
  base::SocketAddress address;
  link::PeerHandle peer;
  bool has_peer = false;         // `peer` has been valid
  bool is_local = false;         // the other end is in this engine
  bool is_proven = false;        // a message arrived from the other end, or its memory was accessed, since the reset
  std::uint8_t incarnation = 0;  // of the other end, from its last request
};

/// How long the requester still waits, and why.
struct Patience {
  std::uint8_t retries_left = 0, rnr_left = 0;
  bool is_paused = false;  // until resume_at
  bool is_lost = false;    // the peer is lost: the oldest request fails at resume_at, with this cause:
  verbs::Cause loss = verbs::Cause::none;
  base::Instant resume_at = base::kNever;
  base::Instant answer_due = base::kNever;  // RC: when the oldest is sent again
  base::Instant waits_since{};              // RC: when the oldest was sent, or the last answer arrived
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

/// The request that the responder executes now.
struct CurrentRequest {
  bool is_active = false;  // its execution has begun
  bool has_receive = false;
  std::uint32_t arrival = Arrival::kNone;
  wire::Envelope envelope;
  std::uint64_t size = 0;
  std::uint64_t left = 0;
  std::byte last{};        // of a write: stored after all other bytes
  std::uint64_t word = 0;  // of an atomic write: its 8 bytes
  /// The bytes lie within the word.
  void keep_word(std::uint64_t offset, std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(&word, 1)).subspan(offset, bytes.size()).begin());
  }
  std::uint64_t receive_id = 0;
  std::uint32_t receive_sges = 0;
  std::uint32_t queue = 0;  // slot of the receive queue that it uses

  bool is(wire::Operation operation) const { return envelope.operation == operation; }
};

/// Requests that arrived before their turn, by sequence.
struct ArrivalChain {
  std::uint32_t first = Arrival::kNone, last = Arrival::kNone;
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
  bool has_dropped = false;  // some were dropped, for lack of room; the first of them:
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
  verbs::QpAttributes attributes;  // with the current state
  bool is_closing = false;
  PairRoute route;
  std::uint32_t flights = 0;  // submitted requests and answers without an outcome yet
  PairTimer timer;

  // Requester.
  std::uint32_t queue_mask;  // all ones if requests name a shared receive queue (XRC initiator)
  SendQueue sends;
  Patience patience;
  bool is_stalled = false;   // waits for room or for the next turn, in the requester's list
  bool awaits_turn = false;  // of these, the next turn
  bool wants_drained = false;

  // Responder.
  std::uint32_t receives = base::Slab<int>::kNone;  // slot of its receive queue
  ReceiveNumber receives_begin;                     // first receive of this incarnation
  RequestTurn turn;
  CurrentRequest current;
  std::vector<verbs::Sge> receive_sges;  // of the current receive
  AtomicResults atomics;
  ArrivalChain early;
  bool is_answer_owed = false;           // an acknowledgement is owed (Answers)
  bool has_heard = false;                // a request or datagram has arrived
  base::Instant gap_due = base::kNever;  // UC: when missing requests are given up

  verbs::QpState state() const { return attributes.state; }
  bool is(verbs::QpType type) const { return plan.type == type; }
  /// Returns whether receives can be posted to it.
  bool takes_receives() const { return !plan.has_shared_receives && state() != verbs::QpState::reset; }
  bool can_receive() const { return state() >= verbs::QpState::rtr && state() <= verbs::QpState::sqe; }
  bool can_ask() const { return state() == verbs::QpState::rts || state() == verbs::QpState::sqd; }

  wire::PairPort port() const { return {number, static_cast<std::uint8_t>(incarnation)}; }
  /// The port of the other end, as the target of answers.
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
  /// Returns the next deadline of the queue pair; kNever if it waits for nothing.
  base::Instant due() const {
    base::Instant at = gap_due;
    if (!can_ask()) return at;
    if (patience.is_paused) return std::min(at, patience.resume_at);
    if (is(verbs::QpType::rc) && sends.is_any_out()) at = std::min(at, patience.answer_due);
    return at;
  }
};

}  // namespace fairlead::qp
