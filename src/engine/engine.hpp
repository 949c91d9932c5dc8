#pragma once
// The owner of all protocol state of one address: the loop over transports and clients, the ports, and the facts about
// them. Passive: it takes the time as an argument, takes no lock, starts no thread and never waits. So the simulator
// can run many engines in one process; EmbeddedCore adds the lock, the clock and waiting.
//
// The clients implement the operations: messages, active messages, queue pairs (transport/client.hpp). The engine
// passes them what the transports deliver, and lets each make progress in turn.
//
// Files: engine (ports, cancelling), engine_loop (a pass: collect, run timers, react, emit), engine_peers (peers that
// come and go), engine_facts.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <fairlead/error.hpp>

#include "base/time.hpp"
#include "engine/active_messages.hpp"
#include "engine/completion.hpp"
#include "engine/engine_options.hpp"
#include "engine/messages.hpp"
#include "engine/ports.hpp"
#include "link/link.hpp"
#include "link/token_source.hpp"
#include "observe/engine_stats.hpp"
#include "path/path.hpp"
#include "transport/lost_peers.hpp"
#include "transport/transports.hpp"

namespace fairlead::qp {
class QueuePairs;
}

namespace fairlead::engine {

/// How many entries of an engine's bounded tables are in use.
struct EngineUse {
  std::uint32_t operations = 0;  // of all ports, including short messages, which the transports keep
  std::uint32_t placements = 0;  // messages that arrive in chunks, or wait in a buffer behind such a message
  std::uint32_t deferred = 0;    // answers that wait for room in a transport
  std::uint32_t loans = 0;       // messages in peers' memory that were not given back yet
};

class Engine {
 public:
  /// `path` may be null: then this engine reaches only its own ports (0@lo), and `address` names it. With `shm` it
  /// reaches engines of this host through shared memory. With `sealing` it seals the traffic over the path.
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
  /// Null without a path, or if peers of this host are reached like all others.
  const shm::Transport* shm_transport() const {
    return transports_ ? std::as_const(*transports_).shm_transport() : nullptr;
  }
  /// Null without a path.
  const link::Link* link() const { return transports_ ? &transports_->link() : nullptr; }
  /// Returns how much of the bounded tables is in use; all zero when nothing is pending.
  EngineUse use() const {
    const Messages::Use messages = messages_.use();
    return {ports_.operations(), messages.placements + active_.filling(),
            static_cast<std::uint32_t>(messages.answers + active_.deferred()), messages.loans};
  }

  /// The ports; callers open them there.
  Ports& ports() { return ports_; }
  /// Returns false if the operation has ended.
  bool cancel(PortHandle port, OperationHandle operation, base::Instant now);
  /// As Core::set_spares(): a plan without spares cancels those that are posted.
  void set_spares(PortHandle port, const SparePlan& plan, base::Instant now);
  /// Cancels all operations of the port, and gives back its loans. Call free_port() when no operation is left.
  void cancel_all(PortHandle port, base::Instant now);
  void free_port(PortHandle port);

  Messages& messages() { return messages_; }
  /// Null: the bounds of the options.
  Status activate(PortHandle port, const ActivePort::Bounds* bounds = nullptr) {
    return active_.activate(port, secrets_.next(), bounds != nullptr ? *bounds : active_.port_bounds());
  }
  Status send_active(PortHandle port, const ActiveMessage& message, base::Instant now,
                     Conversation* conversation = nullptr);
  ActiveMessages& active() { return active_; }
  const ActiveMessages& active() const { return active_; }

  /// Replaces the keys of an engine that seals.
  void set_keyring(std::shared_ptr<const seal::Keyring> ring) {
    transports_->set_keyring(std::move(ring));
    ++messages_.counters().keyrings_read;
  }

  /// The client for queue pairs; the first call makes it.
  qp::QueuePairs& pairs() { return pairs_ ? *pairs_ : make_pairs(); }

  /// Makes one pass. Returns true if anything happened.
  bool progress(base::Instant now);
  /// Makes a pass for the consumer of a port. Stores the port's queued events in `to`, then new ones while there is
  /// room, and returns how many. Sets `any` to the result of progress().
  std::size_t progress_into(Port& port, std::span<Completion> to, base::Instant now, bool& any);
  /// The time of the last pass, or of a later call that has set it.
  base::Instant now() const { return now_; }
  void set_now(base::Instant now) { now_ = std::max(now, now_); }
  /// Returns whether only peers of this host have messages, and no answer waits for room. A pass may then use the time
  /// of the last one for some microseconds.
  bool is_network_idle() const {
    return transports_ && transports_->is_network_idle() && !messages_.is_owing() && !active_.is_owing();
  }
  /// Returns the peer at that address if it was resolved recently, else null.
  const link::PeerHandle* find_peer(const base::SocketAddress& address) const {
    return transports_ ? transports_->find(address) : nullptr;
  }
  /// Does the same for peers that are reached through shared memory.
  const link::PeerHandle* find_local(const base::SocketAddress& address) const {
    const link::PeerHandle* const peer = find_peer(address);
    return peer != nullptr && shm::Transport::has(*peer) ? peer : nullptr;
  }
  /// Returns whether something waits to be sent or acknowledged, including answers that no local thread awaits.
  bool is_owing() const;
  /// Call before a thread sleeps on the descriptors of path and shared memory. Returns false if there is work already.
  /// Calls are not counted: the first disarm() disarms shared memory for all threads that sleep.
  bool arm() { return !shm_transport() || shm_transport()->arm(); }
  void disarm() {
    if (shm_transport()) shm_transport()->connections().watch().disarm();
  }
  /// Connections to engines of this host; null without shared memory.
  shm::Connections* connections() { return shm_transport() ? &shm_transport()->connections() : nullptr; }
  /// Call before farewell(). Tells all peers that this engine ends, again at each call. Returns how many peers have not
  /// answered yet.
  std::size_t take_leave(base::Instant now) {
    is_leaving_ = true;
    return transports_ ? transports_->take_leave(now) : 0;
  }
  /// Call before the engine ends. Acknowledges received data without the usual delay, and ends all sessions. Peers then
  /// complete what was received here, and fail the rest at once instead of after seconds of silence.
  void farewell(base::Instant now);
  /// Returns the latest time of the next progress(), even if nothing arrives.
  base::Instant next_deadline() const;
  /// Checks all invariants, and ends the process if one is violated. Slow: for the simulator.
  void check();

  observe::EngineFacts facts() const;
  /// Returns facts, ports and queue pairs, and the flight recorder's entries if `wants_flights`.
  observe::EngineStats stats(bool wants_flights);
  /// What to know of a path with a NAT.
  static constexpr std::string_view kNat =
      "a NAT translates an address on the way; messages to connected peers pass, but bulk transfers and queue pairs "
      "need addresses that both ends can reach";
  /// As Core::describe_failure().
  std::string describe_peer(const base::SocketAddress& address, base::Instant now, Status status = Status::ok) const;
  transport::PeerFacts peer_facts(const base::SocketAddress& address) const;
  /// Returns the last events with a peer, one line each; empty if nothing is known.
  std::string describe_flight(const base::SocketAddress& address, base::Instant now) const;
  /// Stalls and losses that were detected since the last take_report(), as notes for the log.
  bool has_report() const { return transports_ && transports_->flight().has_report(); }
  std::vector<base::LogNote> take_report() { return transports_->flight().take_report(); }

 private:
  friend class Handover;

  static constexpr std::uint32_t kNone = Ports::kNone;
  static constexpr base::Duration kAttendEvery = std::chrono::microseconds(20);

  shm::Transport* shm_transport() { return transports_ ? transports_->shm_transport() : nullptr; }
  qp::QueuePairs& make_pairs();
  /// Returns whether something waits for an event that is not a time, so that each pass must retry it.
  bool is_retrying() const { return messages_.is_retrying() || active_.is_owing(); }

  // engine_loop.cpp
  bool collect(base::Instant now);
  bool attend_local(base::Instant now);
  bool take_local(base::Instant now);
  bool react(base::Instant now);
  void deliver(const link::Delivery& delivery, base::Instant now);
  void end_outcome(const link::Outcome& outcome);
  void end_arrival(std::uint64_t target, Status status);

  // engine_peers.cpp
  void take_notice(const link::Notice& notice, base::Instant now);
  void greet(const link::Notice& notice);
  void report_end(const link::Notice& notice, bool has_left, base::Instant now);
  void end_peer(const link::Notice& notice, base::Instant now);
  void expel_condemned(base::Instant now);

  base::SocketAddress address_;
  EngineOptions options_;
  std::uint64_t epoch_;
  link::TokenSource secrets_;                          // source of the secret part of keys, and of the link's seed
  std::unique_ptr<transport::Transports> transports_;  // null without a path

  Ports ports_;
  ActiveMessages active_;
  Messages messages_;
  std::unique_ptr<qp::QueuePairs> pairs_;
  transport::LostPeers lost_peers_;
  bool is_leaving_ = false;
  base::Instant attend_at_{};  // next check for arriving and leaving peers of this host
  base::Instant now_{};        // time of the current call, for completions
};

/// Returns the descriptor of shared memory; -1 if there is none.
inline int shm_descriptor(Engine& engine) {
  return engine.connections() != nullptr ? engine.connections()->descriptor() : -1;
}

}  // namespace fairlead::engine
