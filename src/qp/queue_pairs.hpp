#pragma once
// All queue pairs of one engine, with what they need: regions, completion streams, receive queues. Passive like the
// engine: time is an argument, the caller holds the engine's lock. A client of the transports (transport/client.hpp).
//
//     Requester       what is posted is sent in order        Responder    requests are executed in order
//       Outstanding   what was sent and is not complete        Executor   one request: judged, carried out, completed
//       OneSided      in a mapped peer's memory                Answers    what goes back
//       Datagrams     UD, both directions                      ReorderBuffer  what comes early, or in chunks
//       GroupDatagrams  UD to groups                             GroupTable     who is attached to them
//
// Down by call: those on the left may call those on the right, and both Completer, which ends requests, receives and
// queue pairs.

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
#include "wire/shm_record.hpp"

namespace fairlead::qp {

class QueuePairs {
 public:
  using Bounds = PairBounds;

  QueuePairs(transport::Transports* transports, const base::SocketAddress& address, const Bounds& bounds);

  PairAccount* accounts() { return completer_.accounts(); }
  RegionTable& regions() { return shared_.regions; }
  /// What peers of this host may do by themselves with a region, by its key: as it is now, or its end.
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

  /// Throws std::bad_alloc, as all that opens something; then nothing has happened.
  Status open_pair(const PairPlan& plan, PairHandle& handle, std::uint32_t& number);
  /// Ends it in any state; it can be freed when is_quiet().
  void begin_close(PairHandle handle, base::Instant now);
  /// Nothing of it is in flight any more.
  bool is_quiet(PairHandle handle);
  /// Peers that keep a pair from being quiet, or a region held, are expelled at the next occasion.
  void press_for(PairHandle handle);
  void press_for_region(std::uint32_t key, bool is_from_before = false);
  void free_pair(PairHandle handle);
  Status change_pair(PairHandle handle, verbs::QpState from, const verbs::QpAttributes& attributes, base::Instant now);
  PairFacts pair_facts(PairHandle handle);
  Result<> attach_group(PairHandle handle, const verbs::Gid& group, std::uint16_t lid);
  Status detach_group(PairHandle handle, const verbs::Gid& group);
  bool is_in_group(PairHandle handle);
  /// Calls visit(pair) for each.
  template <typename Visit>
  void for_each(Visit&& visit) {
    pairs_.for_each(std::forward<Visit>(visit));
  }

  /// Whether it speaks to a peer of this host.
  bool is_on_host(PairHandle handle);
  int post_send(PairHandle handle, std::span<const verbs::SendRequest> requests, std::size_t& taken, base::Instant now);
  int post_send_all(PairHandle handle, std::span<const verbs::SendRequest> requests, base::Instant now);
  int post_receive(PairHandle handle, std::span<const verbs::ReceiveRequest> requests, std::size_t& taken);

  // The engine's side.
  void deliver(const link::Delivery& delivery, base::Instant now);
  /// A short one from a peer of this host. False if it is for somebody else.
  bool deliver_short(link::PeerHandle from, const wire::ShmHead& head, const wire::ShmOrdered& turn,
                     std::span<const std::byte> bytes, base::Instant now);
  void end_outcome(const link::Outcome& outcome, base::Instant now) {
    shared_.now = now;
    requester_.end_outcome(outcome);
  }
  /// The sender of a half-received message is lost.
  void end_arrival(std::uint64_t target, Status status);
  /// A peer is lost; what was in flight to it has had its outcome.
  void end_peer(link::PeerHandle peer, Status status, base::Instant now);
  bool progress(base::Instant now);
  base::Instant next_deadline() const;

  /// Whether answers wait to leave.
  bool is_owing() const { return answers_.is_any_owed() || answers_.is_any_deferred(); }
  const PairCounters& counters() const { return shared_.counters; }

  /// Ends the process if anything contradicts itself. Looks at everything: for the simulator.
  void check();

 private:
  friend struct PairsForTests;

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
