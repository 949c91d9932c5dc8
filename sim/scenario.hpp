#pragma once
// What happens in a simulated world: hosts, the links between them, faults at their times, and who sends what to whom.
// Comes from a file (scenario_file.hpp) or is drawn from a seed (swarm.hpp). Hosts are numbered from 0.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <fairlead/error.hpp>

#include "base/time.hpp"
#include "engine/engine_options.hpp"
#include "path/sim_link.hpp"
#include "sim/sabotage.hpp"

namespace fairlead::sim {

using namespace std::chrono_literals;

inline constexpr std::uint32_t kHostsMax = 1024;
/// Stands for each host.
inline constexpr std::uint32_t kEveryHost = ~0U;

struct HostPlan {
  /// Between two passes of its engine: what a pass costs, roughly.
  base::Duration pass_time = 1us;
  /// From an arrival to the pass that takes it: the wake-up of a sleeper.
  base::Duration wake_time = 0us;
  /// The application looks for events this often; 0: after each pass.
  base::Duration look_every{};
  /// Events it takes at each look.
  std::uint32_t events_per_look = 256;
  std::uint64_t receive_buffer_bytes = 4u << 20;
  std::uint32_t receives_posted = 16;      // per port
  std::uint32_t messages_per_receive = 8;  // at most; several messages lie in one buffer
  bool merges_arrivals = true;
  bool starts_before_wrap = false;  // the sequence numbers of its first session soon wrap
  path::SimDownlink downlink;
};

/// The link of one direction from the start.
struct LinkPlan {
  std::uint32_t from = kEveryHost, to = kEveryHost;
  path::SimLink link;
};

struct FaultPlan {
  enum class Kind : std::uint8_t {
    link,     // the direction (or both) behaves like `link` meanwhile; a partition is a loss of 100 %
    pause,    // the host stands still; its kernel goes on receiving into the buffer
    restart,  // the process is killed, or ends in order; after `lasting` a new one starts with the same address
    replace,  // the engine is handed over to a new one, within `lasting` or not at all; nobody notices
  };
  Kind kind = Kind::link;
  base::Duration at{}, lasting{};
  std::uint32_t host = 0;                            // pause, restart, replace
  std::uint32_t from = kEveryHost, to = kEveryHost;  // link
  bool is_both_ways = false;
  bool is_orderly = false;  // restart: the engine takes its leave
  path::SimLink link;
};

/// One host sends to another: the next operation follows when less than `in_flight` are pending and `gap` has passed.
struct FlowPlan {
  enum class Kind : std::uint8_t { message, put, get, mixed };
  Kind kind = Kind::message;
  std::uint32_t from = 0, to = 1;
  std::uint64_t size_min = 64, size_max = 64;
  bool is_mostly_small = true;
  std::uint32_t in_flight = 4;
  base::Duration gap{};
  base::Duration start{}, stop{};  // stop 0: at the end
  double cancels = 0;              // share of operations that their owner cancels after a while
  double misuses = 0;              // share of puts and gets with a wrong key, kind or length
};

/// With what sessions are sealed (docs/seal.md).
enum class Seals : std::uint8_t { none, shared_secret, static_keys };

/// What must hold at the end besides the invariants. Zero or empty: not asked.
struct Expectation {
  std::vector<Status> ends;       // the only ones that operations end with (canceled and refused misuse aside)
  std::vector<Status> ends_some;  // each of them occurs
  bool has_no_resends = false;
  double resends_max = 1;                // share of the segments sent, all hosts together
  bool has_no_needless_resends = false;  // nothing resent had arrived
  base::Duration no_resends_after{};     // from then on nothing is sent again: what the path does has been learnt
  double goodput_min = 0;                // share of the receiver's downlink, over the time of the flows
  double fair_share_min = 0;             // of the equal share, for the slowest of the flows that are like the last one
  double latency_p99_max_of_idle = 0;  // 99th percentile of the flow `latency_flow`, in round trips of an idle network
  std::uint32_t latency_flow = 0;
};

struct Scenario {
  std::string name, title;
  base::Duration time = 1s;            // flows submit until then
  base::Duration resumes_within = 2s;  // after each healed fault, something moves again on each flow that it touched
  std::uint32_t ports = 1;             // per host
  bool has_rare_branches = true;
  bool is_one_machine = false;    // its hosts are processes of one machine, and share memory
  bool has_clock_offsets = true;  // each host's clock starts somewhere else
  Seals seals = Seals::none;
  engine::EngineOptions options;
  path::SimLink link;  // all that LinkPlans do not name
  std::vector<HostPlan> hosts;
  std::vector<LinkPlan> links;
  std::vector<FaultPlan> faults;
  std::vector<FlowPlan> flows;
  Expectation expect;
  Sabotage::Kind sabotage = Sabotage::Kind::none;  // in tests of the simulator itself
};

}  // namespace fairlead::sim
