#pragma once
// A whole simulated world: built from a scenario and a seed, run on virtual time, and judged. A run is a pure function
// of its seed: nothing here reads a clock, depends on an address in memory, or uses another thread.
//
// Phases of a run: flows submit and faults come and go until the scenario's time. Then everything pending must end.
// Then receives and exposures are cancelled. Then the world must fall silent, and nothing may be left.

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rare.hpp"
#include "path/sim_network.hpp"
#include "sim/findings.hpp"
#include "sim/flow.hpp"
#include "sim/host.hpp"
#include "sim/liars.hpp"
#include "sim/machine.hpp"
#include "sim/samples.hpp"
#include "sim/scenario.hpp"
#include "sim/trace.hpp"

namespace fairlead::sim {

/// The result of a run.
struct Report {
  std::optional<std::string> finding{};
  std::uint64_t hash = 0;  // over all events; equal for equal seeds
  std::uint64_t events = 0;
  base::Duration time{};                   // simulated
  std::map<Status, std::uint64_t> ends{};  // of the flows' operations
  std::uint64_t datagrams = 0, resends = 0, replacements = 0;
  std::uint64_t lies = 0, liars_expelled = 0;  // expulsions that a lie made necessary
  std::map<std::string_view, base::RareBranches::Count> rare{};
};

class World {
 public:
  /// `trace` may be null. `is_sampled` collects samples for a plot.
  World(const Scenario& scenario, std::uint64_t seed, std::FILE* trace = nullptr, bool is_sampled = false);

  Report run();
  const Samples* samples() const { return samples_ ? &*samples_ : nullptr; }

 private:
  struct Change {  // a fault begins or ends
    std::size_t fault = 0;
    bool is_end = false;
  };
  /// A healed fault: the flow must make progress by this time.
  struct Awaited {
    std::uint32_t flow = 0;
    std::uint64_t progress = 0;
  };

  void schedule_faults();
  void set_links();
  void begin(const FaultPlan& fault);
  void heal(const FaultPlan& fault);
  void kill(std::uint32_t number);
  void set_fault_link(const FaultPlan& fault, bool is_end);
  void await_progress();
  std::uint64_t progress_of(std::uint32_t flow);

  Shared shared() { return {scenario_, findings_, trace_, ledger_, sabotage_}; }
  Report report();
  template <typename IsOver>
  void run_until(base::Instant limit, IsOver&& is_over);
  void step();
  base::Instant next_moment() const;
  void turn_flow(std::uint32_t number);
  void hand_out_ended(Host& host);
  std::vector<Liars::Process> processes();
  void run_drain();
  void run_wind_down();
  void run_silence();
  bool is_drained() const;
  struct Resends {
    std::uint64_t fast = 0, probe = 0, other = 0;
    std::uint64_t all() const { return fast + probe + other; }
  };
  Resends resends();

  Scenario scenario_;
  Findings findings_;
  Trace trace_;
  Ledger ledger_;
  Sabotage sabotage_;
  base::RareBranches rare_;
  Random random_;
  base::Instant now_ = kBegin;
  path::SimNetwork network_;
  std::optional<Machine> machine_;
  std::vector<Host> hosts_;
  std::vector<Flow> flows_;
  Liars liars_;
  std::multimap<base::Instant, Change> changes_;
  std::multimap<base::Instant, Awaited> awaited_;
  std::optional<Samples> samples_;
  std::optional<Resends> resends_learning_;  // until expect.resends_after
};

}  // namespace fairlead::sim
