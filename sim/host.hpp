#pragma once
// A host with at most one process at a time, which consists of an engine and an application. The process sleeps until a
// datagram arrives or a timer of its engine is due, as if its thread waited on the path's descriptor. Nothing polls. An
// engine that forgets to ask for its next pass therefore hangs here, as it would in production.

#include <cstdint>
#include <memory>
#include <optional>

#include "path/sim_network.hpp"
#include "sim/application.hpp"
#include "sim/machine.hpp"

namespace fairlead::sim {

class Host {
 public:
  /// `machine` is null if the host is a machine by itself.
  Host(std::uint32_t number, const HostPlan& plan, path::SimNetwork& network, const Machine* machine, Shared shared,
       std::uint64_t seed);

  /// Starts a new process with the same address and a new epoch.
  void start(base::Instant now);
  /// Makes the engine end in an orderly way.
  void take_leave(base::Instant now);
  /// Kills the process, like SIGKILL, and informs the ledger.
  void kill(base::Instant now);
  void pause(base::Instant until);
  /// Hands the engine over to a new one as soon as it is idle. Stops trying at `until`.
  void replace(base::Instant until);
  bool is_being_replaced() const { return replaced_by_ != base::kNever; }
  std::uint32_t replacements() const { return replacements_; }

  bool is_up() const { return engine_ != nullptr; }
  bool is_awake(base::Instant now) const { return is_up() && now >= paused_until_; }
  base::Instant paused_until() const { return paused_until_; }
  Application* application() { return application_.get(); }
  engine::Engine* engine() { return engine_.get(); }
  WatchedPath* path() { return path_; }
  /// Bytes of messages, over any transport.
  std::uint64_t bytes_delivered() const;
  base::Instant began() const { return began_; }
  const HostPlan& plan() const { return plan_; }

  /// Call when datagrams may have arrived.
  void on_network(base::Instant now);
  /// Call when a process of the same machine may have rung.
  void on_doorbell(base::Instant now);
  /// Call after calls into the engine: its deadlines may have moved.
  void on_submission(base::Instant now);
  base::Instant next_turn() const { return next_turn_; }
  /// Runs a pass of the engine and a look of the application, if they are due.
  void turn(base::Instant now);

 private:
  void plan_next(base::Instant now);
  void wake(base::Instant now);
  bool pass(base::Instant now);
  shm::RingReader* reader_with_record();

  void try_to_replace(base::Instant now);

  std::uint32_t number_;
  HostPlan plan_;
  path::SimNetwork& network_;
  const Machine* machine_;
  Shared shared_;
  Random random_;
  std::uint32_t lives_ = 0, replacements_ = 0;
  base::Instant replaced_by_ = base::kNever;  // the time limit, or kNever
  base::Duration clock_offset_{};
  base::Instant began_{}, paused_until_{};
  base::Instant pass_not_before_{}, look_not_before_{};
  base::Instant pass_at_ = base::kNever, next_turn_ = base::kNever;
  std::uint32_t passes_in_vain_ = 0;
  bool is_armed_ = false;  // the doorbell is armed
  base::Instant arm_at_ = base::kNever;
  std::unique_ptr<engine::Engine> engine_;
  WatchedPath* path_ = nullptr;  // owned by the engine
  std::unique_ptr<Application> application_;
};

}  // namespace fairlead::sim
