#pragma once
// All queue pairs of an engine, with their regions, completion streams and receive queues. Passive like the engine:
// time is an argument, and the caller holds the engine's lock. A client of the transports (transport/client.hpp).
//
//     Requester         sends posted requests in order      Responder        executes requests in order
//       Outstanding     requests sent, not complete           Executor       checks, executes, completes a request
//       OneSided        access to a local peer's memory       Answers        answers to requesters
//       Datagrams       UD, both directions                   ReorderBuffer  early requests, messages in chunks
//       GroupDatagrams  UD to groups                          GroupTable     queue pairs attached to groups
//
// The classes on the left may call those on the right. Both call Completer, which completes requests and receives and
// ends queue pairs.

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "link/link.hpp"
#include "qp/answers.hpp"
#include "qp/completer.hpp"
#include "qp/datagrams.hpp"
#include "qp/executor.hpp"
#include "qp/group_datagrams.hpp"
#include "qp/group_table.hpp"
#include "qp/one_sided.hpp"
#include "qp/outstanding.hpp"
#include "qp/pair_core.hpp"
#include "qp/pair_table.hpp"
#include "qp/published_tables.hpp"
#include "qp/receive_queue.hpp"
#include "qp/reorder_buffer.hpp"
#include "qp/requester.hpp"
#include "qp/responder.hpp"
#include "qp/shared.hpp"
#include "transport/client.hpp"

namespace fairlead::qp {

class QueuePairs {
 public:
  using Bounds = PairBounds;

  QueuePairs(transport::Transports* transports, const base::SocketAddress& address, const Bounds& bounds);

  PairAccount* accounts() { return completer_.accounts(); }
  RegionTable& regions() { return shared_.regions; }
  /// Publishes the current region of the key to local peers; withdraws it while a withdrawal is open.
  void publish_region(std::uint32_t key) { published_.publish_region(key); }

  Status open_receive_queue(const ReceiveQueuePlan& plan, ReceiveQueueHandle& handle) {
    return receives_.open(plan, handle);
  }
  Status close_receive_queue(ReceiveQueueHandle handle);
  Status change_receive_queue(ReceiveQueueHandle handle, std::uint32_t depth, std::uint32_t limit);
  ReceiveQueueFacts receive_queue_facts(ReceiveQueueHandle handle);
  int post_to_receive_queue(ReceiveQueueHandle handle, std::span<const verbs::ReceiveRequest> requests,
                            std::size_t& taken);

  CompletionStream* open_completions(const CompletionStream::Plan& plan);
  Status close_completions(CompletionStream* stream);

  /// Throws std::bad_alloc, like all calls that open something, and then has changed nothing.
  Status open_pair(const PairPlan& plan, PairHandle& handle, std::uint32_t& number);
  /// Ends a queue pair in any state. It can be freed when is_quiet() returns true.
  void begin_close(PairHandle handle, base::Instant now);
  /// Returns whether no message of the queue pair is in flight.
  bool is_quiet(PairHandle handle);
  /// Condemns the peers whose messages delay a close, or hold a region: the engine ends their sessions.
  void press_for(PairHandle handle);
  void press_for_region(std::uint32_t key, bool is_from_before = false);
  void free_pair(PairHandle handle);
  Status change_pair(PairHandle handle, verbs::QpState from, const verbs::QpAttributes& attributes, base::Instant now);
  /// Returns the access flags by which local peers access memory directly.
  std::uint32_t published_rights(PairHandle handle);
  PairFacts pair_facts(PairHandle handle);
  Result<> attach_group(PairHandle handle, const verbs::Gid& group, std::uint16_t lid);
  Status detach_group(PairHandle handle, const verbs::Gid& group);
  bool is_in_group(PairHandle handle);
  /// Calls visit(pair) for each queue pair.
  template <typename Visit>
  void for_each(Visit&& visit) {
    pairs_.for_each(std::forward<Visit>(visit));
  }

  /// Returns whether the peer is on this host.
  bool is_on_host(PairHandle handle);
  int post_send(PairHandle handle, std::span<const verbs::SendRequest> requests, std::size_t& taken, base::Instant now);
  int post_send_all(PairHandle handle, std::span<const verbs::SendRequest> requests, base::Instant now);
  int post_receive(PairHandle handle, std::span<const verbs::ReceiveRequest> requests, std::size_t& taken);
  /// Returns whether receives can be posted to the queue pair, and complete in this stream.
  bool takes_receives(PairHandle handle, const CompletionStream* stream);

  // Calls of the engine.
  void deliver(const link::Delivery& delivery, base::Instant now);
  void end_outcome(const link::Outcome& outcome, base::Instant now) {
    shared_.now = now;
    requester_.end_outcome(outcome);
  }
  /// Handles the loss of the sender of a message that has partly arrived.
  void end_arrival(std::uint64_t target, Status status);
  /// Handles the loss of a peer. All messages in flight to it have had their outcome.
  void end_peer(link::PeerHandle peer, Status status, base::Instant now);
  /// Returns whether a request to the peer at this address, or an answer for it, is under way.
  bool is_using(link::PeerHandle peer, const base::SocketAddress& address);
  /// The handle is stale from now on: the peer is reached in another way.
  void end_route(link::PeerHandle peer, base::Instant now);
  bool progress(base::Instant now);
  base::Instant next_deadline() const;

  /// While held, no request and no result of a read is sent. What arrives is executed and acknowledged.
  void hold(bool is_held);
  /// Returns whether answers have to be sent.
  bool is_owing() const { return answers_.is_any_owed() || answers_.is_any_deferred(); }
  const PairCounters& counters() const { return shared_.counters; }

  /// Checks all invariants and ends the process if one is violated. For the simulator.
  void check();

 private:
  friend struct PairsForTests;
  friend class PairsHandover;

  QueuePair* find_open(PairHandle handle);
  QueuePair& add_pair(const PairPlan& plan, ReceiveQueueHandle receives);
  Status find_receives(const PairPlan& plan, ReceiveQueueHandle& handle);
  void reset(QueuePair& pair);
  void apply(QueuePair& pair, verbs::QpState from, const verbs::QpAttributes& attributes);
  void fail(QueuePair& pair, const verbs::QpAttributes& attributes);
  int post(QueuePair& pair, std::span<const verbs::SendRequest> requests, std::size_t& taken);
  int post_receive(QueuePair& pair, const verbs::ReceiveRequest& request);
  void take_request(const link::Delivery& delivery);
  void take_chunk(const link::Delivery& delivery);
  bool end_timers();

  bool is_held_ = false;
  Shared shared_;
  PairTable pairs_;
  std::vector<std::unique_ptr<CompletionStream>> streams_;
  ReceiveQueues receives_;
  ReorderBuffer arrivals_{shared_};
  PublishedTables published_{shared_};
  Completer completer_{shared_, receives_, arrivals_, published_, PairTable::kMost};
  Executor executor_{shared_, receives_, completer_, published_};
  Answers answers_{shared_, pairs_, executor_};
  Responder responder_{shared_, pairs_, arrivals_, executor_, answers_};
  Outstanding outstanding_{shared_, completer_, executor_};
  OneSided one_sided_{shared_, outstanding_};
  Datagrams datagrams_{shared_, pairs_, receives_, arrivals_, completer_, executor_};
  GroupTable groups_{shared_};
  GroupDatagrams group_datagrams_{shared_, pairs_, datagrams_, groups_};
  Requester requester_{
      shared_,
      {pairs_, arrivals_, completer_, executor_, answers_, outstanding_, one_sided_, datagrams_, group_datagrams_}};
};

}  // namespace fairlead::qp
