#pragma once
// The application on a host during one life. It opens ports, keeps receives posted, submits the flows' operations, and
// checks each event against the ledger.
//
// It uses the world's time; its engine uses the host's clock.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/time.hpp"
#include "engine/engine.hpp"
#include "sim/ledger.hpp"
#include "sim/random.hpp"
#include "sim/region.hpp"
#include "sim/scenario.hpp"
#include "sim/trace.hpp"
#include "sim/watched_path.hpp"

namespace fairlead::sim {

/// State that all parts of a world share.
struct Shared {
  const Scenario& scenario;
  Findings& findings;
  Trace& trace;
  Ledger& ledger;
  Sabotage& sabotage;
};

class Application {
 public:
  struct Life {
    std::uint32_t host = 0, number = 0;
    base::Duration clock_offset{};
    base::Instant begins{};
    std::uint64_t seed = 0;
  };

  Application(const Life& life, const HostPlan& plan, engine::Engine& engine, WatchedPath& path, Shared shared);

  /// Opens the ports and posts the first receives.
  void begin(base::Instant now);

  // --- Operations of flows (application_submit.cpp). They return null if the engine had no room: try again later.
  Operation* send(std::uint32_t flow, std::uint32_t to, std::uint32_t to_port, std::uint64_t size, base::Instant now);
  Operation* expose(bool is_writable, std::uint64_t size, base::Instant now);
  /// A put or get on another application's exposed memory.
  struct Request {
    OperationKind kind = OperationKind::put;
    std::uint32_t flow = kNoFlow;
    std::uint32_t to = 0, to_port = 0;
    std::uint64_t epoch = 0, key = 0;
    std::uint64_t size = 0;
    std::uint64_t exposure = 0;  // its number
    Status misuse = Status::ok;
  };
  Operation* transfer(const Request& request, base::Instant now);
  void cancel(Operation& operation, base::Instant now);
  void cancel_later(const Operation& operation, base::Instant at) { cancels_.emplace(at, operation.number); }

  // --- Events (application_events.cpp)
  /// Takes up to `events_max` events, keeps receives posted, and runs cancels that are due.
  void look(std::uint32_t events_max, base::Instant now);
  base::Instant next_cancel() const { return cancels_.empty() ? base::kNever : cancels_.begin()->first; }
  bool has_events() const;
  /// Returns the flows' operations that have ended since the last call.
  std::vector<std::uint64_t> take_ended() { return std::exchange(ended_, {}); }

  /// Reserves events in a new engine, which has no room for events yet.
  void reserve_again();
  /// Stops posting, and cancels receives and exposures.
  void wind_down(base::Instant now);
  void check_memory() { regions_.check(shared_.findings); }

  const Life& life() const { return life_; }
  std::uint32_t port_count() const { return static_cast<std::uint32_t>(ports_.size()); }
  Operation* find(std::uint64_t number) { return shared_.ledger.find(number); }
  std::uint64_t dropped_at(std::uint32_t port) const;
  std::uint64_t epoch() const { return engine_.epoch(); }

 private:
  struct Port {
    engine::PortHandle handle;
    std::uint32_t reserved = 0;  // events
    std::uint32_t receives = 0;  // posted
  };

  base::Instant local(base::Instant now) const { return now + life_.clock_offset; }
  bool reserve(std::uint32_t port, std::uint32_t events);
  void release(std::uint32_t port, std::uint32_t events);
  /// Opens an operation. Its memory is sometimes longer than the bytes to transfer.
  Operation& open(OperationKind kind, std::uint32_t port, std::uint64_t size, base::Instant now);
  /// Completes a submission. If the engine refused it, undoes everything and returns null.
  Operation* settle(Operation& operation, Status status, std::uint32_t events);
  void post_receives(base::Instant now);
  bool post_receive(std::uint32_t port, base::Instant now);

  void take(std::uint32_t port, const engine::Completion& completion, base::Instant now);
  void take_message(Operation& receive, const engine::Completion& completion);
  void take_transfer(Operation& operation, const engine::Completion& completion);
  void finish(Operation& operation, const engine::Completion& completion, base::Instant now);
  void note_peer_end(const Operation& operation, Status status, base::Instant now);

  Life life_;
  const HostPlan& plan_;
  engine::Engine& engine_;
  WatchedPath& path_;
  Shared shared_;
  Random random_;
  RegionPool regions_;
  std::uint64_t message_size_max_ = 0;
  std::vector<Port> ports_;
  std::vector<std::uint64_t> pending_to_;  // by host: sends, puts and gets
  std::multimap<base::Instant, std::uint64_t> cancels_;
  std::vector<std::uint64_t> ended_;
  bool is_winding_down_ = false;
};

}  // namespace fairlead::sim
