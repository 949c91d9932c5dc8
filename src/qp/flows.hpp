#pragma once
// All flows of one engine, with what they need: regions, streams, pools. Passive like the engine: time is an argument,
// the caller holds the engine's lock.
//
// The files: flows (objects and states), flow_post (what is posted), flow_requester (sending), flow_answers (what comes
// back), flow_near (the straight line of short sends inside a host), flow_direct (one-sided requests that we carry out
// in a mapped_peer's memory), flow_foreign (outside what it shows), flow_responder (executing), flow_arrival (chunks
// and what comes early), flow_datagram (UD), flow_timer, flow_loss.

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/slab.hpp"
#include "link/link.hpp"
#include "qp/flow.hpp"
#include "qp/flow_core.hpp"
#include "qp/flow_places.hpp"
#include "qp/region_table.hpp"
#include "shm/connection.hpp"
#include "shm/publish_count.hpp"
#include "transport/client.hpp"
#include "transport/retry_queue.hpp"
#include "transport/transports.hpp"
#include "wire/shm_record.hpp"

namespace fairlead::shm {
struct OwnedRecords;
struct SharedFlow;
struct SharedRegion;
struct SharedTables;
}  // namespace fairlead::shm

namespace fairlead::qp {

/// What was refused or thrown away, one counter a reason.
struct FlowCounters {
  std::uint64_t requests_sent = 0;
  std::uint64_t requests_executed = 0;
  std::uint64_t answers_sent = 0;
  std::uint64_t requests_repeated = 0;  // sent again: RNR, not ready, no answer
  std::uint64_t duplicates = 0;         // answered, not executed
  std::uint64_t refused_repeats = 0;    // of those: not allowed (any more)
  std::uint64_t held = 0;               // came early and waited
  std::uint64_t held_bytes_most = 0;
  std::uint64_t refused_no_room = 0;     // came early and found no room: asked for again
  std::uint64_t refused_not_ready = 0;   // no such number, wrong state, wrong peer
  std::uint64_t receiver_not_ready = 0;  // RC: no receive posted, told so
  std::uint64_t dropped_no_receive = 0;  // UC, UD: no receive posted, or too small
  std::uint64_t dropped_queue_key = 0;   // UD
  std::uint64_t dropped_gap = 0;         // UC: messages given up because one before them was lost
  std::uint64_t dropped_malformed = 0;
  std::uint64_t dropped_late_answer = 0;
  std::uint64_t dropped_answers = 0;                                      // that waited for room to a peer that is lost
  std::uint64_t dropped_unreachable = 0;                                  // UD, UC: no such peer
  std::uint64_t completions_lost = 0;                                     // overrun
  std::uint64_t straight_sends = 0, straight_arrivals = 0;                // of those sent and executed
  std::uint64_t direct_writes = 0, direct_reads = 0, direct_atomics = 0;  // carried out by us in the peer's memory
  std::uint64_t direct_waits = 0;                                         // until what was sent before had ended
  std::uint64_t writes_by_calls = 0, reads_by_calls = 0;                  // of those, outside what it shows
  std::uint64_t calls_failed = 0;                                         // then it is asked for
};

class Flows {
 public:
  struct Bounds {
    std::uint32_t number_first = 0;   // queue pair numbers are this plus an index
    std::uint16_t port_first = 0;     // UDP port of the engine with the first numbers
    std::uint64_t copied_max = 0;     // bytes of a message that is copied at submission
    std::uint64_t early_max = 0;      // bytes kept of requests that came before their turn
    std::uint64_t cma_max = 0;        // bytes that an initiator moves by system calls if the owner sleeps ...
    std::uint64_t cma_awake_max = 0;  // ... and if it is awake
  };

  /// `transports` is null if this engine reaches only itself. `number_first` is ~0 if its port is outside its range.
  Flows(transport::Transports* transports, const base::SocketAddress& address, const Bounds& bounds);
  ~Flows();

  FlowAccount* accounts() { return accounts_.get(); }
  RegionTable& regions() { return regions_; }
  /// What peers of this host may do by themselves: shows a region as it is now (or its end), under its key.
  void show_region(std::uint32_t key);

  Status open_pool(const PoolPlan& plan, PoolHandle& pool);
  Status close_pool(PoolHandle pool);
  Status change_pool(PoolHandle pool, std::uint32_t depth, std::uint32_t limit);
  PoolFacts pool_facts(PoolHandle pool);
  int post_to_pool(PoolHandle pool, std::span<const verbs::ReceiveRequest> requests, std::size_t& taken);

  CompletionStream* open_completions(const CompletionStream::Plan& plan);
  Status close_completions(CompletionStream* stream);

  Status open_flow(const FlowPlan& plan, FlowHandle& flow, std::uint32_t& number);
  /// Ends it in any state; it can be freed when is_quiet().
  void begin_close(FlowHandle flow, base::Instant now);
  /// Nothing of it is in the link any more.
  bool is_quiet(FlowHandle flow);
  /// Peers that keep a flow from being quiet, or a region held, are expelled at the next occasion.
  void press_for(FlowHandle flow);
  void press_for_region(std::uint32_t key);
  void free_flow(FlowHandle flow);
  Status change_flow(FlowHandle flow, verbs::QpState from, const verbs::QpAttributes& attributes, base::Instant now);
  FlowFacts flow_facts(FlowHandle flow);
  /// Whether its peer is on this host.
  bool is_near(FlowHandle flow);
  int post_send(FlowHandle flow, std::span<const verbs::SendRequest> requests, std::size_t& taken, base::Instant now);
  int post_send_all(FlowHandle flow, std::span<const verbs::SendRequest> requests, base::Instant now);
  int post_receive(FlowHandle flow, std::span<const verbs::ReceiveRequest> requests, std::size_t& taken);

  // The engine's side.
  void deliver(const link::Delivery& delivery, base::Instant now);
  void end_outcome(const link::Outcome& outcome, base::Instant now);
  /// The straight line of deliver(): a short message from a peer of this host. False if it has to go the general way.
  bool arrive_near(link::PeerHandle from, const wire::ShmHead& head, const wire::ShmOrdered& turn,
                   std::span<const std::byte> bytes, base::Instant now);
  /// The peer's reader has passed a message of the straight line.
  void end_near(std::uint64_t cookie, base::Instant now);
  /// The sender of a half-received message is lost.
  void end_arrival(std::uint64_t target, Status status);
  /// A peer is lost; what was in the link has had its outcome.
  void end_peer(link::PeerHandle peer, Status status, base::Instant now);
  bool progress(base::Instant now);
  base::Instant next_deadline() const;

  /// Whether answers wait to leave.
  bool is_owing() const { return !owing_.empty() || !deferred_.is_empty(); }
  const FlowCounters& counters() const { return counters_; }
  std::string describe() const;

  /// Ends the process if anything contradicts itself. Looks at everything: for the simulator.
  void check();

  /// Cookies and targets that are ours have this bit; all others belong to the engine's operations.
  static constexpr std::uint64_t kOurs = transport::kQueuePairsMark;

 private:
  friend struct FlowsForTests;

  shm::Transport* shm_transport() const { return transports_ != nullptr ? transports_->shm_transport() : nullptr; }
  bool is_here(const base::SocketAddress& engine) const { return engine == address_; }

  static constexpr std::uint32_t kNone = base::Slab<Flow>::kNone;
  static constexpr std::uint32_t kFlowsMax = 4096;
  static constexpr std::uint32_t kFirstIndex = 2;         // numbers 0 and 1 are reserved
  static constexpr std::uint64_t kEmbedded = 1ULL << 30;  // the cookie is flow and request, no flight
  static constexpr std::uint32_t kArrivalsMaxOfFlow = 8192;
  static constexpr std::uint64_t kDatagramMax = 4096;                      // UD
  static constexpr base::Duration kGapPatience = std::chrono::seconds(1);  // UC: what the link repairs comes earlier

  // How a request was answered. The order is the wire's.
  enum class Verdict : std::uint8_t { ack, rnr, invalid, access, operation, not_ready, go_back };
  static constexpr auto kVerdictLast = Verdict::go_back;

  // Envelope::flags of requests.
  struct Flags {
    static constexpr std::uint16_t kImm = 1;
    static constexpr std::uint16_t kSolicited = 2;
    static constexpr std::uint16_t kFetchAdd = 4;
    static constexpr std::uint16_t kAcknowledges = 8;  // `a`, and all before it, of the other direction
    static constexpr unsigned kTrafficClassShift = 8;
  };

  // Envelope::flags of answers: a Cause, and this: it ends a read or an atomic.
  static constexpr std::uint16_t kCarriesResult = 1U << 8;

  /// What the responder says to one request.
  struct Answer {
    Verdict verdict = Verdict::ack;
    verbs::Cause cause = verbs::Cause::none;
    std::uint64_t value = 0;  // atomics
    std::uint8_t rnr_code = 0;
  };
  /// Whether a request is allowed, and where what it names lies.
  struct Judgement {
    Answer answer;
    Permit place;
    bool is_allowed() const { return answer.verdict == Verdict::ack; }
  };

  // flows.cpp
  Flow* find(FlowHandle handle);
  Flow* find_number(std::uint32_t number);
  Pool* find_pool(PoolHandle handle) { return pools_.find(handle.slot, handle.generation); }
  void tell(const Flow& flow, verbs::AsyncEventType type);
  void enter_error(Flow& flow);
  void discard(Flow& flow, base::Instant now);
  void flush_sends(Flow& flow);
  void flush_receives(Flow& flow);
  void complete_send(Flow& flow, SendEntry& entry, verbs::WcStatus status, verbs::Cause cause);
  void complete_receive(Flow& flow, std::uint64_t id, verbs::WorkCompletion completion, bool is_solicited);
  static std::uint32_t retires_of_receive(const Flow& flow) {
    return FlowEvent::kOfReceives | (flow.plan.has_shared_pool ? 0 : 1);
  }
  /// make(place) constructs the FlowEvent. `is_notable`: solicited, or failed.
  template <typename Make>
  void tell_receive(Flow& flow, bool is_notable, Make&& make) {
    if (!flow.plan.receive_stream->produce(make, is_notable)) [[unlikely]]
      lose_receive(flow);
  }
  void lose_receive(Flow& flow);
  void on_overrun(Flow& flow);
  std::uint64_t timestamp() const;
  base::SocketAddress address_of(const verbs::AddressVector& vector, std::uint32_t number) const;
  void check_drained(Flow& flow);

  // flow_post.cpp
  int take_send(Flow& flow, const verbs::SendRequest& request);

  // flow_requester.cpp
  /// Of a request that the link has copied.
  static std::uint64_t embedded_cookie(std::uint32_t flow, std::uint32_t number) {
    return static_cast<std::uint64_t>(number) << 32 | kOurs | kEmbedded | flow;
  }
  static std::uint32_t end_of_sending(const Flow& flow);
  void pump(Flow& flow, base::Instant now);
  bool start(Flow& flow, std::uint32_t number, base::Instant now);
  bool start_local(Flow& flow, std::uint32_t number, base::Instant now);
  bool start_remote(Flow& flow, std::uint32_t number, base::Instant now);
  bool refuse_start(Flow& flow, SendEntry& entry, verbs::WcStatus status, verbs::Cause cause);
  wire::Envelope envelope_of(Flow& flow, std::uint32_t number);
  verbs::Cause gather(Flow& flow, std::uint32_t number, iovec* pieces, std::uint32_t* regions, std::uint32_t& count);
  Status submit(Flow& flow, link::Outgoing& message, base::Instant now);
  static base::Duration answer_patience(const Flow& flow);
  static void await(Flow& flow, base::Instant now) {
    flow.waits_since = now;
    flow.answer_due = now + answer_patience(flow);
  }

  // flow_near.cpp
  bool start_near(Flow& flow, base::Instant now);

  // flow_direct.cpp
  enum class Direct : std::uint8_t { none, later, done };
  Direct start_direct(Flow& flow, std::uint32_t number, base::Instant now);
  std::byte* reach(const Flow& flow, const SendEntry& entry, shm::Connection& peer) const;
  std::optional<std::uint64_t> find_place(const Flow& flow, const SendEntry& entry, const shm::SharedFlow& there,
                                          const shm::SharedRegion& region) const;
  void show(const Flow& flow);
  shm::SharedTables* shared_tables();
  std::string describe_direct() const;

  // flow_foreign.cpp
  bool carry_out_by_calls(const Flow& flow, const SendEntry& entry, shm::Connection& peer,
                          std::span<const iovec> pieces);
  std::optional<std::uint64_t> look_up(const Flow& flow, const SendEntry& entry, shm::Connection& peer);
  bool gather_targets(Flow& flow, std::uint32_t number, iovec* pieces, std::uint32_t& count) const;
  shm::OwnedRecords* owned_records();

  // flow_answers.cpp
  void on_answer(const link::Delivery& delivery, base::Instant now);
  void on_answer_chunk(std::uint32_t slot, const link::Delivery& delivery, base::Instant now);
  void take_carried_answer(Flow& flow, std::uint32_t target_port, std::uint32_t sequence, base::Instant now);
  void take_answer(Flow& flow, std::uint32_t number, const Answer& answer, base::Instant now);
  void acknowledge(Flow& flow, std::uint32_t end, base::Instant now);
  void finish_read(Flow& flow, std::uint32_t number, base::Instant now);
  void place_read(Flow& flow, std::uint32_t number, std::uint64_t offset, std::span<const std::byte> bytes);
  void fail_request(Flow& flow, std::uint32_t number, verbs::WcStatus status, verbs::Cause cause);
  void go_back(Flow& flow, std::uint32_t number, base::Duration pause, base::Instant now);
  void not_ready(Flow& flow, std::uint32_t number, verbs::Cause cause, base::Instant now);
  void complete_in_order(Flow& flow, base::Instant now);
  void fail_head(Flow& flow, verbs::WcStatus status, verbs::Cause cause);

  // flow_responder.cpp
  void on_request(const link::Delivery& delivery, base::Instant now);
  void refuse(const link::Delivery& delivery, verbs::Cause cause, base::Instant now);
  void on_duplicate(Flow& flow, const link::Delivery& delivery, base::Instant now);
  Judgement judge(const Flow& flow, const wire::Envelope& envelope, std::uint64_t size) const;
  // Each of these is false if the request cannot go on; `answer` says why then.
  bool execute(Flow& flow, const wire::Envelope& envelope, std::span<const iovec> source, std::uint64_t size,
               Answer& answer);
  bool begin(Flow& flow, const wire::Envelope& envelope, std::uint64_t size, Answer& answer);
  void run_atomic(Flow& flow, const wire::Envelope& envelope, const Permit& place, Answer& answer);
  bool put(Flow& flow, std::uint64_t offset, std::span<const std::byte> bytes, Answer& answer);
  bool finish(Flow& flow, Answer& answer);
  bool fail_current(Flow& flow, Verdict verdict, verbs::Cause cause, Answer& answer);
  bool take_receive(Flow& flow);
  Answer execute_local(Flow& responder, const wire::Envelope& envelope, std::span<const iovec> source,
                       std::uint64_t size, Permit& read);
  verbs::Cause scatter(std::span<const verbs::Sge> sges, std::uint32_t domain, std::uint64_t offset,
                       std::span<const std::byte> bytes);
  void conclude(Flow& flow, const wire::Envelope& envelope, const Answer& answer, base::Instant now);
  void owe_answer(Flow& flow);
  void send_owed(Flow& flow, base::Instant now);
  void send_answer(Flow& flow, std::uint32_t sequence, const Answer& answer, std::uint16_t flags, base::Instant now);
  void submit_answer(link::PeerHandle peer, const wire::Envelope& envelope, base::Instant now);
  void note_wrong_key(const Flow& flow, const Judgement& judged);
  void refuse_again(Flow& flow, const wire::Envelope& envelope, const Judgement& judged, base::Instant now);
  void answer_read(Flow& flow, const wire::Envelope& envelope, base::Instant now);
  Status try_answer_read(Flow& flow, const wire::Envelope& envelope, base::Instant now);
  void retry_deferred(base::Instant now);

  // flow_arrival.cpp
  std::uint32_t add_arrival(Flow& flow, const link::Delivery& delivery);
  void drop_arrival(std::uint32_t slot);
  void drop_arrivals(Flow& flow);
  void unlink(Flow& flow, std::uint32_t slot);
  void hold(Flow& flow, const link::Delivery& delivery, base::Instant now);
  void keep(Flow& flow, Waiting& arrival, std::uint64_t offset, std::span<const std::byte> bytes);
  bool can_hold(const Flow& flow, std::size_t bytes) const;
  void note_dropped(Flow& flow, std::uint32_t sequence);
  void drain(Flow& flow, base::Instant now);
  void start_chunked(Flow& flow, const link::Delivery& delivery, base::Instant now);
  void put_chunk(Flow& flow, std::uint64_t offset, std::span<const std::byte> bytes, base::Instant now);
  void on_chunk(const link::Delivery& delivery, base::Instant now);
  std::uint64_t target_of(std::uint32_t slot) const {
    return static_cast<std::uint64_t>(arrivals_.generation(slot)) << 32 | kOurs | slot;
  }

  // flow_datagram.cpp
  bool start_datagram(Flow& flow, std::uint32_t number, base::Instant now);
  void start_datagram_chunked(const link::Delivery& delivery);
  void drop_datagram(std::uint32_t slot);
  Flow* judge_datagram(const wire::Envelope& envelope, std::uint64_t size);
  void on_datagram_chunk(std::uint32_t slot, const link::Delivery& delivery);
  void on_datagram(const wire::Envelope& envelope, const base::SocketAddress& from, std::span<const iovec> source,
                   std::uint64_t size);

  // flow_timer.cpp
  void set_timer(Flow& flow, base::Instant at);
  void on_timer(Flow& flow, base::Instant now);
  static base::Instant due(const Flow& flow);
  void stall(Flow& flow);

  // flow_loss.cpp
  static base::Instant end_of_patience(const Flow& flow, base::Instant now);
  void lose(Flow& flow, Status status, base::Instant now);
  void end_lost(Flow& flow, base::Instant now);

  struct Deferred {
    wire::Envelope envelope;              // the answer, or the read to be answered
    std::uint32_t flow = Waiting::kNone;  // of a read
    std::uint32_t life = 0;
  };
  void defer(link::PeerHandle peer, const Deferred& answer, base::Instant now);

  transport::Transports* transports_;
  base::SocketAddress address_;
  Bounds bounds_;
  base::Instant now_{};  // of the current call
  RegionTable regions_;
  std::unique_ptr<FlowAccount[]> accounts_;
  std::vector<std::unique_ptr<Flow>> flows_;        // by index
  std::vector<std::uint32_t> generations_, lives_;  // by index; they go on from one flow to the next
  std::deque<std::uint32_t> free_;                  // first in, first out: a number rests as long as it can
  base::Slab<Pool> pools_;
  base::Slab<Flight> flights_;
  FlowPlaces arrivals_;
  std::vector<std::unique_ptr<CompletionStream>> streams_;
  FlowTimers timers_;
  std::vector<std::uint32_t> owing_;
  std::vector<std::uint32_t> stalled_;
  transport::RetryQueue<Deferred> deferred_;  // answers that wait for room in the link
  std::uint64_t held_bytes_ = 0;
  std::uint64_t datagram_bytes_ = 0;  // of those
  shm::PublishCount shows_;           // of flows and regions
  FlowCounters counters_;
};

}  // namespace fairlead::qp
