#pragma once
// The one owner of protocol state: the loop over transports and clients, ports, and what can be told of all that.
// Passive: it takes the time as an argument, takes no lock, starts no thread and never waits, so that the simulator can
// run many in one process; EmbeddedCore adds lock, clock and waiting.
//
// What operations mean its clients know: messages, active messages, queue pairs (transport/client.hpp). The engine
// hands them what the transports deliver, and asks each in turn what it has to do.
//
// The files: engine (ports, cancelling), engine_loop (a pass: collect, react, emit, timers), engine_peers (who comes
// and goes), engine_facts.

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

/// What an engine keeps for what is pending.
struct EngineUse {
  std::uint32_t operations = 0;  // of all ports, also the short messages that the transports have
  std::uint32_t placements = 0;  // messages in several chunks that are under way
  std::uint32_t deferred = 0;    // answers that wait for room in the link
  std::uint32_t loans = 0;       // messages in peers' memory that are being read here
};

class Engine {
 public:
  /// `path` may be null: then this engine reaches only its own ports (0@lo) and `address` names it. With `shm`
  /// it reaches engines of this host through shared memory; with `sealing` it seals what goes over the path.
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
    const Messages::Use messages = messages_.use();
    return {ports_.operations(), messages.placements + active_.filling(),
            static_cast<std::uint32_t>(messages.answers + active_.deferred()), messages.loans};
  }

  /// Also opens ports.
  Ports& ports() { return ports_; }
  bool cancel(PortHandle port, OperationHandle operation, base::Instant now);
  void set_spares(PortHandle port, const SparePlan& plan, base::Instant now);
  /// Cancels all operations of the port; it may be freed once it has none left.
  void cancel_all(PortHandle port, base::Instant now);
  void free_port(PortHandle port);

  Messages& messages() { return messages_; }
  Status activate(PortHandle port) { return active_.activate(port, secrets_.next()); }
  Status send_active(PortHandle port, const ActiveMessage& message, base::Instant now,
                     Conversation* conversation = nullptr);
  ActiveMessages& active() { return active_; }
  const ActiveMessages& active() const { return active_; }

  /// Other keys from now on, of an engine that seals.
  void set_keyring(std::shared_ptr<const seal::Keyring> ring) {
    transports_->set_keyring(std::move(ring));
    ++messages_.counters().keyrings_read;
  }

  /// Queue pairs and what they need; made at the first call.
  qp::QueuePairs& pairs() { return pairs_ ? *pairs_ : make_pairs(); }

  /// One pass; true if anything happened.
  bool progress(base::Instant now);
  /// The same for a port's consumer: what waits for him and what happens meanwhile, as much as the table holds.
  std::size_t progress_into(Port& port, std::span<Completion> to, base::Instant now, bool& any);
  /// The time of the last call.
  base::Instant now() const { return now_; }
  void set_now(base::Instant now) { now_ = std::max(now, now_); }
  /// Only peers of this host have something to say, and nothing waits for a certain time: a pass at the time of the
  /// last one will do, for some microseconds.
  bool is_network_idle() const {
    return transports_ && transports_->is_network_idle() && !messages_.is_owing() && !active_.is_owing();
  }
  /// The peer at that address, as far as it is known at once.
  const link::PeerHandle* find_peer(const base::SocketAddress& address) const {
    return transports_ ? transports_->find(address) : nullptr;
  }
  /// The same, if messages to it go through shared memory.
  const link::PeerHandle* find_local(const base::SocketAddress& address) const {
    const link::PeerHandle* const peer = find_peer(address);
    return peer != nullptr && shm::Transport::has(*peer) ? peer : nullptr;
  }
  /// Whether something waits to leave or to be acknowledged: answers to peers, that nobody here waits for.
  bool is_owing() const;
  /// Before a thread sleeps on the descriptors of path and shared memory: false if there is something to do already.
  /// Shared memory is armed by one call and disarmed by one, however many threads sleep (docs/shm.md).
  bool arm() { return !shm_transport() || shm_transport()->arm(); }
  void disarm() {
    if (shm_transport()) shm_transport()->connections().watch().disarm();
  }
  /// Of shared memory; -1 if there is none.
  int shm_descriptor() const { return shm_transport() ? shm_transport()->connections().descriptor() : -1; }
  /// Engines of this host that share memory with us; null if there is no shared memory.
  shm::Connections* connections() { return shm_transport() ? &shm_transport()->connections() : nullptr; }
  /// Before that: all peers are told that this engine ends, again by each call; how many have not said that they know.
  std::size_t take_leave(base::Instant now) {
    is_leaving_ = true;
    return transports_ ? transports_->take_leave(now) : 0;
  }
  /// Before the end: acknowledges what has come, without the usual delay, and ends all sessions. Peers complete what
  /// was taken here, and fail the rest at once instead of finding a silent peer seconds later.
  void farewell(base::Instant now);
  /// When progress() is due again at the latest though nothing arrives.
  base::Instant next_deadline() const;
  /// Ends the process if anything contradicts itself. Looks at everything: for the simulator.
  void check();

  observe::EngineFacts facts() const;
  /// The facts, ports and queue pairs; flights only if they are wanted.
  observe::EngineStats stats(bool wants_flights);
  std::string describe_peer(const base::SocketAddress& address, base::Instant now) const;
  /// The last events with a peer, a line each; empty if nothing is known.
  std::string describe_flight(const base::SocketAddress& address, base::Instant now) const;
  /// Stalls and losses noticed since the last call, for people.
  bool has_report() const { return transports_ && transports_->flight().has_report(); }
  std::vector<base::LogNote> take_report() { return transports_->flight().take_report(); }

 private:
  friend class Handover;

  static constexpr std::uint32_t kNone = Ports::kNone;
  static constexpr base::Duration kAttendEvery = std::chrono::microseconds(20);

  struct LocalArrivals;

  shm::Transport* shm_transport() { return transports_ ? transports_->shm_transport() : nullptr; }
  qp::QueuePairs& make_pairs();
  /// What waits for something else than time, so that each pass tries it again.
  bool is_retrying() const { return messages_.is_retrying() || active_.is_owing(); }

  // engine_loop.cpp
  bool collect(base::Instant now);
  bool collect_local(base::Instant now);
  void attend(LocalArrivals& arrivals, bool& any);
  bool react(base::Instant now);
  void deliver(const link::Delivery& delivery, base::Instant now);
  void end_outcome(const link::Outcome& outcome);
  void end_arrival(std::uint64_t target, Status status);

  // engine_peers.cpp
  void take_notice(const link::Notice& notice, base::Instant now);
  void greet_local(const link::Notice& notice);
  void report_end(const link::Notice& notice, bool has_left, base::Instant now);
  void end_peer(const link::Notice& notice, base::Instant now);
  void expel_condemned(base::Instant now);

  base::SocketAddress address_;
  EngineOptions options_;
  std::uint64_t epoch_;
  link::TokenSource secrets_;                          // of the random part of keys, and of the link's seed
  std::unique_ptr<transport::Transports> transports_;  // null without a path

  Ports ports_;
  ActiveMessages active_;
  Messages messages_;
  std::unique_ptr<qp::QueuePairs> pairs_;
  transport::LostPeers lost_peers_;
  bool is_leaving_ = false;
  base::Instant attend_at_{};  // when the comings and goings of shared memory are looked at
  base::Instant now_{};        // of the current call, for completions
};

}  // namespace fairlead::engine
