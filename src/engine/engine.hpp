#pragma once
// The one owner of protocol state: ports, operations, matching and bulk over one link and one path. Passive: it takes
// the time as an argument, takes no lock, starts no thread and never waits, so that the simulator can run many in one
// process; EmbeddedCore adds lock, clock and waiting.
//
// The files: engine_submit (what applications ask), engine_receive (what peers ask), engine_local (both ends here),
// engine_direct (one end here, the other's memory too),
// engine_loan (messages in place), engine_patience (what was cancelled and does not end), engine_expel (peers that are
// put out), engine_loop (a pass: collect, react, emit, timers).
//
// An operation lives from its submission to its final completion. A transfer to another engine has two ends that must
// both come before it completes: the link's outcome (its memory is free again) and the target's answer (what
// became of it).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <fairlead/error.hpp>

#include "base/slab.hpp"
#include "base/time.hpp"
#include "engine/active_messages.hpp"
#include "engine/completion.hpp"
#include "engine/core.hpp"
#include "engine/engine_counters.hpp"
#include "engine/engine_options.hpp"
#include "engine/operation.hpp"
#include "engine/ports.hpp"
#include "link/link.hpp"
#include "link/token_source.hpp"
#include "path/path.hpp"
#include "shm/publish_count.hpp"
#include "transport/by_peer.hpp"
#include "transport/retry_queue.hpp"
#include "transport/transports.hpp"

namespace fairlead::qp {
class QueuePairs;
}
namespace fairlead::shm {
struct OwnedExposure;
struct PublishedExposure;
}  // namespace fairlead::shm

namespace fairlead::engine {

/// What an engine keeps for what is pending.
struct EngineUse {
  std::uint32_t operations = 0;
  std::uint32_t placements = 0;  // messages in several chunks that are under way
  std::uint32_t deferred = 0;    // answers that wait for room in the link
  std::uint32_t loans = 0;       // messages in peers' memory that are being read here
};

/// A message in the memory of a peer of this host, which somebody here reads.
struct LentMessage {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> memory;  // they lie in
  std::uint32_t port = 0;              // slot
  link::PeerHandle peer;
  std::uint64_t cookie = 0;
};

class Engine {
 public:
  /// `path` may be null: then this engine reaches only its own ports (0@lo) and `address` names it. With a `shm
  /// transport` it reaches engines of this host through shared memory; with `sealing` it seals what goes over the path.
  Engine(std::unique_ptr<path::Path> path, const base::SocketAddress& address, const EngineOptions& options,
         std::uint64_t epoch, std::uint64_t seed, std::unique_ptr<shm::Transport> shm = nullptr,
         std::optional<link::SealSettings> sealing = std::nullopt);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const base::SocketAddress& address() const { return address_; }
  std::uint64_t epoch() const { return epoch_; }
  const EngineOptions& options() const { return options_; }
  path::Path* path() { return transports_ ? &transports_->path() : nullptr; }
  /// Null if peers of this host are reached as all others.
  const shm::Transport* shm_transport() const {
    return transports_ ? std::as_const(*transports_).shm_transport() : nullptr;
  }
  /// Null without a path.
  const link::Link* link() const { return transports_ ? &transports_->link() : nullptr; }
  /// How much of its bounded memory is in use: all zero when nothing is pending.
  EngineUse use() const {
    return {operations_.used(), placements_.used() + active_.filling(),
            static_cast<std::uint32_t>(deferred_.size() + active_.deferred()), loans_.used()};
  }

  /// Also opens ports.
  Ports& ports() { return ports_; }
  /// Cancels all operations of the port; it may be freed once it has none left.
  void cancel_all(PortHandle port, base::Instant now);
  void free_port(PortHandle port);

  Status post_receive(PortHandle port, const Receive& receive, OperationHandle& operation);
  Status send(PortHandle port, const Send& send, OperationHandle& operation, base::Instant now);
  /// The straight line of send(), at the time of the last call: short messages to an engine that is_near(). How many of
  /// the parts; with the next, send() has to go on.
  std::size_t send_near(PortHandle port, const RemotePort& to, std::span<const link::SendPart> parts,
                        std::span<OperationHandle> operations);
  Status expose(PortHandle port, const Exposure& exposure, OperationHandle& operation, std::uint64_t& key);
  Status transfer(PortHandle port, OperationKind kind, const Transfer& transfer, OperationHandle& operation,
                  base::Instant now);
  bool cancel(PortHandle port, OperationHandle operation, base::Instant now);
  /// What a completion says is lent. Needs no lock.
  LoanView loan(std::uint64_t name) {
    const LentMessage& lent = loans_[slot_of(name)];
    return {lent.bytes, lent.memory};
  }
  void give_back(PortHandle port, std::uint64_t name, base::Instant now);

  Status activate(PortHandle port) { return active_.activate(port, secrets_.next()); }
  Status send_active(PortHandle port, const ActiveMessage& message, base::Instant now,
                     Conversation* conversation = nullptr);
  ActiveMessages& active() { return active_; }
  const ActiveMessages& active() const { return active_; }

  /// Other keys from now on, of an engine that seals.
  void set_keyring(std::shared_ptr<const seal::Keyring> ring) {
    transports_->set_keyring(std::move(ring));
    ++counters_.keyrings_read;
  }

  /// Queue pairs and what they need; made at the first call.
  qp::QueuePairs& flows() { return flows_ ? *flows_ : make_flows(); }

  /// One pass; true if anything happened.
  bool progress(base::Instant now);
  /// The same for a port's consumer: what waits for him and what happens meanwhile, as much as the table holds.
  std::size_t progress_into(Port& port, std::span<Completion> to, base::Instant now, bool& any);
  /// The time of the last call.
  base::Instant now() const { return now_; }
  void set_now(base::Instant now) { now_ = std::max(now, now_); }
  /// Only peers of this host have something to say, and nothing waits for a certain time: a pass at the time of the
  /// last one will do, for some microseconds.
  bool is_near() const;
  /// Whether messages to that address take the shm transport; as far as it is known at once.
  bool is_near(const base::SocketAddress& address) const {
    return transports_ && transports_->find_local(address) != nullptr;
  }
  /// Whether something waits to leave or to be acknowledged: answers to peers, that nobody here waits for.
  bool is_owing() const;
  /// Before a thread sleeps on the descriptors of path and shm transport: false if there is something to do already.
  /// The shm transport is armed by one call and disarmed by one, however many threads sleep (docs/shm.md).
  bool arm() { return !shm_transport() || shm_transport()->arm(); }
  void disarm() {
    if (shm_transport()) shm_transport()->connections().disarm();
  }
  /// Of the shm transport; -1 if there is none.
  int shm_descriptor() const { return shm_transport() ? shm_transport()->connections().descriptor() : -1; }
  /// Engines of this host that share memory with us; null if there is no shm transport.
  shm::Connections* connections() { return shm_transport() ? &shm_transport()->connections() : nullptr; }
  /// Before the end: acknowledges what has come, without the usual delay, and ends all sessions. Peers complete what
  /// was taken here, and fail the rest at once instead of finding a silent peer seconds later.
  void farewell(base::Instant now);
  /// Before that: all peers are told that this engine ends, again by each call; how many have not said that they know.
  std::size_t take_leave(base::Instant now) { return transports_ ? transports_->take_leave(now) : 0; }
  /// When progress() is due again at the latest though nothing arrives.
  base::Instant next_deadline() const;
  /// Ends the process if anything contradicts itself. Looks at everything: for the simulator.
  void check();

  observe::EngineFacts facts() const;
  std::string describe_peer(const base::SocketAddress& address, base::Instant now) const;
  /// The last events with a peer, a line each; empty if nothing is known.
  std::string describe_flight(const base::SocketAddress& address, base::Instant now) const;
  /// Stalls and losses noticed since the last call, for people.
  bool has_report() const { return transports_ && transports_->flight().has_report(); }
  std::string take_report() { return transports_->flight().take_report(); }

 private:
  /// Answers that wait for room, withdrawals that a peer holds up: tried again in each pass.
  bool is_retrying() const { return !deferred_.is_empty() || active_.is_owing() || !withdrawing_.empty(); }

  static constexpr std::uint32_t kNone = base::Slab<Operation>::kNone;
  static constexpr std::uint32_t kMatchWalkMax = 4096;
  static constexpr std::uint32_t kKeySlotBits = 20;
  static constexpr std::size_t kLossesRemembered = 256;
  static constexpr std::uint32_t kNearSlots = 1U << 31;  // operations from here on: sent to peers of the shm transport
  static constexpr base::Duration kAttendEvery = std::chrono::microseconds(20);

  shm::Transport* shm_transport() { return transports_ ? transports_->shm_transport() : nullptr; }

  // engine.cpp
  std::uint32_t make_operation(OperationKind kind, PortHandle port, std::uint64_t cookie);
  void complete(std::uint32_t slot, Status status, std::uint64_t length);
  void release_operation(std::uint32_t slot);
  bool is_here(const base::SocketAddress& engine) const;
  OperationHandle handle_of(std::uint32_t slot) const { return {slot, operations_.generation(slot)}; }
  std::uint64_t name_of(std::uint32_t slot) const { return pack_name(slot, operations_.generation(slot)); }
  Operation* find_operation(std::uint64_t name) { return operations_.find(slot_of(name), generation_of(name)); }
  std::uint64_t make_key(std::uint32_t slot);
  qp::QueuePairs& make_flows();

  // engine_near.cpp
  struct ShmTaker;
  bool cancel_near(const OperationHandle& operation);
  void end_near(const shm::ShortEnd& end);
  void put_near_end(const shm::ShortEnd& end, base::Instant now);

  // engine_local.cpp
  void send_local(std::uint32_t slot, std::uint32_t target_port);
  void transfer_local(std::uint32_t slot, std::uint64_t key, std::uint32_t target_port);

  // engine_direct.cpp
  bool carry_out(PortHandle port, bool is_put, const Transfer& transfer);
  shm::PublishedExposure& shown_exposure(std::uint64_t key);
  void show_exposure(std::uint32_t slot);
  bool withdraw_exposure(std::uint32_t slot);
  void hide_exposure(std::uint32_t slot);
  bool is_held(const shm::PublishedExposure& shown);
  bool carry_out_by_calls(shm::Connection& there, std::uint64_t name, bool is_put, const Transfer& transfer,
                          std::uint64_t& length);
  shm::OwnedExposure& owned_exposure(std::uint64_t key);
  void retry_withdrawals();
  void deliver_carried_out(const link::Delivery& delivery);
  void end_abandoned(Status status);

  // engine_loan.cpp
  bool lend(PortHandle port, const Send& send, OperationHandle& operation, Status& status);
  void send_instead(std::uint32_t slot);
  void deliver_given_back(const link::Delivery& delivery);
  void deliver_lent(const link::Delivery& delivery, base::Instant now);
  void end_loan(std::uint32_t slot, base::Instant now);

  // engine_receive.cpp
  void deliver(const link::Delivery& delivery, base::Instant now);
  void deliver_message(const link::Delivery& delivery, base::Instant now);
  void deliver_put(const link::Delivery& delivery, base::Instant now);
  void deliver_get(const link::Delivery& delivery, base::Instant now);
  void deliver_answer(const link::Delivery& delivery, base::Instant now);
  void deliver_done(const link::Delivery& delivery);
  std::uint32_t match_receive(std::uint32_t port_slot, std::uint64_t size);
  std::uint64_t take_room(std::uint32_t slot, std::uint64_t size);
  void complete_message(std::uint32_t slot, std::uint64_t offset, std::uint64_t length, const RemotePort& source);
  void finish_placements(std::uint32_t slot);
  std::uint32_t add_placement(std::uint32_t operation, std::uint64_t offset, std::uint64_t size,
                              const RemotePort& source);
  void place(const link::Delivery& delivery, std::uint32_t operation, std::uint64_t offset, base::Instant now);
  void place_chunk(const link::Delivery& delivery, std::uint32_t placement, base::Instant now);
  void end_transfer(std::uint32_t operation, const link::Delivery& delivery, base::Instant now);
  void end_arrival(std::uint64_t target, Status status);
  void fail_placement(std::uint64_t target, Status status);
  Status check_exposure(std::uint64_t key, std::uint32_t port, OperationKind kind, std::uint64_t length,
                        std::uint32_t& slot);
  void answer(link::PeerHandle peer, const wire::Envelope& envelope, std::uint64_t exposure, base::Instant now);
  Status submit_answer(link::PeerHandle peer, const wire::Envelope& envelope, std::uint64_t exposure,
                       base::Instant now);
  void settle(std::uint32_t slot);

  // engine_patience.cpp
  void grant_patience(std::uint64_t name, base::Instant now);
  void end_impatient(base::Instant now);
  void end_by_force(std::uint32_t slot);
  void abandon_placements(std::uint32_t slot);

  // engine_loop.cpp
  bool collect(base::Instant now);
  bool collect_shm(base::Instant now);
  bool react(base::Instant now);
  void end_outcome(const link::Outcome& outcome);
  void end_peer(const link::Notice& notice, base::Instant now);
  void end_shm_peer(const link::Notice& notice, base::Instant now);
  bool note_loss(const link::Notice& notice, base::Instant now);
  void end_waiting(link::PeerHandle peer, Status status);
  void retry_deferred(base::Instant now);
  base::Duration ask_after() const;
  void ask_for_answers(base::Instant now);

  // engine_expel.cpp
  void expel_condemned(base::Instant now);
  void drop_deferred(link::PeerHandle peer, Status status);

  /// An answer that waits for room in the link.
  struct Deferred {
    wire::Envelope envelope;
    std::uint64_t exposure = 0;  // name of the exposed memory that is the payload, or 0
  };
  struct Impatient {
    base::Instant at;
    std::uint64_t name = 0;  // of an operation
  };
  struct Loss {
    link::Notice notice;
    base::Instant when;
    transport::Offence offence = transport::Offence::none;  // for which we ended it
    bool has_left = false;                                  // in order: it had said that it ends
  };

  base::SocketAddress address_;
  EngineOptions options_;
  std::uint64_t epoch_;
  link::TokenSource secrets_;                          // of the random part of keys, and of the link's seed
  std::unique_ptr<transport::Transports> transports_;  // null without a path

  Ports ports_;
  ActiveMessages active_;
  base::Slab<Operation> operations_;
  base::Slab<Placement> placements_;
  base::Slab<LentMessage> loans_;              // taken, not given back
  transport::ByPeer<OperationChain> waiting_;  // operations that wait for the peer's answer
  std::vector<std::uint32_t> shown_;  // exposures in the table that peers of this host see, by place; made when needed
  shm::PublishCount shows_;           // of exposures
  std::vector<std::uint64_t> withdrawing_;  // names of those that ended while a peer held them
  std::uint64_t closings_seen_ = 0;         // of the shm transport's connections
  base::Instant attend_at_{};               // when the shm transport's comings and goings are looked at
  std::deque<Impatient> impatient_;         // what was cancelled and has not ended; the earliest first
  transport::RetryQueue<Deferred> deferred_;
  std::unordered_map<base::SocketAddress, Loss, base::SocketAddressHash> losses_;
  base::Instant ask_at_ = base::kNever;  // when to ask peers that owe answers whether they are still there
  base::Instant now_{};                  // of the current call, for completions
  EngineCounters counters_;
  std::unique_ptr<qp::QueuePairs> flows_;
};

}  // namespace fairlead::engine
