#pragma once
// The plan of a simulated world: hosts, links, faults and flows. It is read from a file (scenario_file.hpp) or
// generated from a seed (swarm.hpp). Hosts are numbered from 0.

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
/// Stands for every host.
inline constexpr std::uint32_t kEveryHost = ~0U;

struct HostPlan {
  /// Time between two passes of the engine: roughly the cost of a pass.
  base::Duration pass_time = 1us;
  /// Time from an arrival to the pass that takes it: the wake-up of a sleeper.
  base::Duration wake_time = 0us;
  /// Interval at which the application takes events; 0: after each pass.
  base::Duration look_every{};
  /// Most events that it takes at once.
  std::uint32_t events_per_look = 256;
  std::uint64_t receive_buffer_bytes = 4u << 20;
  std::uint32_t receives_posted = 16;      // per port
  std::uint32_t messages_per_receive = 8;  // at most; one buffer holds several messages
  bool merges_arrivals = true;
  bool starts_before_wrap = false;  // the sequence numbers of its first session soon wrap
  path::SimDownlink downlink;
};

/// The initial link of one direction.
struct LinkPlan {
  std::uint32_t from = kEveryHost, to = kEveryHost;
  path::SimLink link;
};

struct FaultPlan {
  enum class Kind : std::uint8_t {
    link,     // the direction (or both) behaves like `link` meanwhile; a partition is a loss of 100 %
    pause,    // the process stands still; its kernel keeps receiving into the socket buffer
    restart,  // the process is killed or ends in order; after `lasting` a new one starts with the same address
    replace,  // the engine is handed over to a new one within `lasting`, or not at all; applications do not notice
    lie,      // of one machine: the process lies to its peers, is killed after `lasting`, and starts again
  };
  Kind kind = Kind::link;
  base::Duration at{}, lasting{};
  std::uint32_t host = 0;                            // of pause, restart, replace, lie
  std::uint32_t from = kEveryHost, to = kEveryHost;  // of link
  bool is_both_ways = false;
  bool is_orderly = false;  // of restart: the engine takes its leave
  path::SimLink link;
};

/// A traffic flow between two hosts. The next operation follows when fewer than `in_flight` are pending and `gap` has
/// passed.
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

/// How sessions are sealed (docs/seal.md).
enum class Seals : std::uint8_t { none, shared_secret, static_keys };

/// What must hold at the end besides the invariants. Zero or empty: no requirement.
struct Expectation {
  std::vector<Status> ends;       // the only final statuses allowed (besides canceled and refused misuse)
  std::vector<Status> ends_some;  // each of them must occur
  bool has_no_resends = false;
  double resends_max = 1;                // share of all hosts' segments
  bool has_no_needless_resends = false;  // no segment may be resent that had arrived
  // From this time on, when the sender has learnt how far the path reorders, at most so many resends. The window of
  // reordering follows what was seen lately, so that a rare straggler is still resent.
  base::Duration resends_after{};
  std::uint32_t resends_after_most = 0;
  double goodput_min = 0;     // share of the receiver's downlink, while flows run
  double fair_share_min = 0;  // share of the equal share, for the slowest flow that resembles the last one
  // 99th percentile of the flow `latency_flow`, in round-trip times of an idle network
  double latency_p99_max_of_idle = 0;
  std::uint32_t latency_flow = 0;
};

struct Scenario {
  std::string name, title;
  base::Duration time = 1s;            // flows submit until then
  base::Duration resumes_within = 2s;  // after each healed fault, every affected flow must move within this time
  std::uint32_t ports = 1;             // per host
  bool has_rare_branches = true;
  bool is_one_machine = false;    // the hosts are processes of one machine and share memory
  bool has_clock_offsets = true;  // each host's clock has an offset of its own
  Seals seals = Seals::none;
  engine::EngineOptions options;
  path::SimLink link;  // of all directions without a LinkPlan
  std::vector<HostPlan> hosts;
  std::vector<LinkPlan> links;
  std::vector<FaultPlan> faults;
  std::vector<FlowPlan> flows;
  Expectation expect;
  Sabotage::Kind sabotage = Sabotage::Kind::none;  // for tests of the simulator itself
};

}  // namespace fairlead::sim
