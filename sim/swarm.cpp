#include "sim/swarm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ensure.hpp"
#include "sim/random.hpp"

namespace fairlead::sim {
namespace {

using engine::Option;

constexpr double kFeatureOn = 0.35;
constexpr std::uint64_t kOperationsMax = 3000;  // per run, all flows together
constexpr std::uint64_t kBytesMax = 24u << 20;

class Swarm {
 public:
  explicit Swarm(std::uint64_t seed) : random_(seed) {
    scenario_.name = fmt::format("seed {}", seed);
    scenario_.title = "drawn from a seed";
  }

  Scenario draw() {
    scenario_.time = base::Duration(static_cast<std::int64_t>(random_.mostly_small(200'000'000, 120'000'000'000)));
    scenario_.ports = static_cast<std::uint32_t>(random_.between(1, 3));
    scenario_.has_rare_branches = random_.chance(0.5);
    scenario_.has_clock_offsets = random_.chance(0.5);
    draw_options();
    scenario_.link = draw_link();
    draw_hosts();
    if (is_on()) draw_odd_link();
    draw_faults();
    draw_flows();
    // Drawn last, so that the rest of a seed's world does not change.
    if (is_on()) draw_machine();
    draw_seals();
    if (is_on()) draw_replacements();
    if (scenario_.is_one_machine && is_on()) draw_liar();
    return scenario_;
  }

 private:
  bool is_on() { return random_.chance(kFeatureOn); }

  template <std::size_t N>
  std::uint64_t one_of(const std::array<std::uint64_t, N>& values) {
    return values[random_.below(N)];
  }

  void set(Option option, std::uint64_t value) {
    ENSURE(scenario_.options.set(option, value).has_value(), "option {} cannot be {}", static_cast<int>(option), value);
  }

  void draw_options() {
    set(Option::give_up_after, one_of<3>({1000, 2000, 5000}));
    set(Option::unreachable_after, one_of<3>({500, 1000, 2000}));
    if (is_on()) set(Option::window_segments, one_of<3>({64, 128, 4096}));
    if (is_on()) set(Option::window_bytes, one_of<3>({64 << 10, 128 << 10, 8 << 20}));
    if (is_on()) set(Option::ack_delay, one_of<3>({1, 500, 5000}));
    if (is_on()) set(Option::datagram_size, one_of<3>({1200, 4000, 9000}));
    if (is_on()) set(Option::resend_after_min, one_of<3>({200, 10'000, 50'000}));
    if (is_on()) set(Option::embedded_max, one_of<3>({0, 64, 1024}));
    if (is_on()) set(Option::tiny_max, one_of<3>({0, 64, 1024}));
    if (is_on()) set(Option::command_depth, one_of<3>({16, 64, 65'536}));
    if (is_on()) set(Option::data_depth, one_of<3>({16, 64, 65'536}));
    if (is_on()) set(Option::command_segment, one_of<3>({1200, 1472, 1920}));
  }

  path::SimLink draw_link() {
    path::SimLink link;
    link.delay = base::Duration(static_cast<std::int64_t>(random_.mostly_small(1'000, 50'000'000)));
    link.datagram_size_max = static_cast<std::uint32_t>(one_of<4>({1472, 1472, 8972, 65'000}));
    if (is_on()) link.loss = 0.001 * static_cast<double>(random_.mostly_small(1, 100));
    if (is_on()) link.loss_burst = static_cast<std::uint32_t>(one_of<3>({3, 10, 40}));
    if (is_on()) link.loss_every = static_cast<std::uint32_t>(random_.between(7, 500));
    if (is_on()) link.duplication = 0.001 * static_cast<double>(random_.mostly_small(1, 200));
    if (is_on())
      link.duplicate_delay = base::Duration(static_cast<std::int64_t>(random_.mostly_small(1'000, 8'000'000'000)));
    if (is_on()) link.reordering = 0.001 * static_cast<double>(random_.mostly_small(1, 500));
    if (is_on())
      link.reorder_delay = base::Duration(static_cast<std::int64_t>(random_.mostly_small(1'000, 20'000'000)));
    if (is_on()) link.corruption = 0.001 * static_cast<double>(random_.mostly_small(1, 50));
    if (is_on()) {
      link.bytes_per_second = one_of<4>({1'250'000, 12'500'000, 125'000'000, 1'250'000'000});
      link.queue_bytes_max = random_.mostly_small(70'000, 4u << 20);
      link.is_senders_own = random_.chance(0.5);
    }
    return link;
  }

  void draw_hosts() {
    HostPlan usual;
    if (is_on()) usual.pass_time = random_.between(1us, 50us);
    if (is_on()) usual.wake_time = random_.between(1us, 200us);
    if (is_on()) usual.receive_buffer_bytes = one_of<3>({96 << 10, 256 << 10, 1 << 20});
    if (is_on()) usual.messages_per_receive = static_cast<std::uint32_t>(random_.between(1, 64));
    if (is_on()) usual.receives_posted = static_cast<std::uint32_t>(random_.between(1, 4));
    usual.merges_arrivals = random_.chance(0.7);
    usual.starts_before_wrap = is_on();
    scenario_.hosts.assign(random_.mostly_small(2, 7), usual);
    if (is_on()) {
      HostPlan& slow = scenario_.hosts[random_.below(scenario_.hosts.size())];
      slow.look_every = random_.between(100us, 20ms);
      slow.events_per_look = static_cast<std::uint32_t>(random_.between(1, 64));
      slow.pass_time = random_.between(1us, 500us);
    }
    if (is_on()) {
      scenario_.hosts[0].downlink = {one_of<2>({12'500'000, 125'000'000}), random_.mostly_small(70'000, 1u << 20)};
    }
  }

  std::uint32_t any_host() { return static_cast<std::uint32_t>(random_.below(scenario_.hosts.size())); }

  std::uint32_t other_host(std::uint32_t than) {
    const std::uint32_t other = any_host();
    return other != than ? other : (other + 1) % static_cast<std::uint32_t>(scenario_.hosts.size());
  }

  void draw_odd_link() {
    const std::uint32_t from = any_host();
    LinkPlan odd{from, other_host(from), draw_link()};
    odd.link.datagram_size_max = scenario_.link.datagram_size_max;
    scenario_.links.push_back(odd);
  }

  void draw_machine() {
    scenario_.is_one_machine = true;
    set(Option::shm_ring, one_of<2>({64 << 10, 256 << 10}));
    set(Option::shm_shared_max, one_of<2>({0, 8 << 20}));
    if (is_on()) set(Option::shm_cma_max, 0);
    if (is_on()) set(Option::shm_cma_awake_max, 1 << 20);
  }

  base::Duration any_time() { return random_.between(0ns, scenario_.time); }
  base::Duration any_length() {
    return base::Duration(static_cast<std::int64_t>(random_.mostly_small(100'000, 12'000'000'000)));
  }

  void draw_faults() {
    const bool has_partitions = is_on(), has_pauses = is_on(), has_restarts = is_on(), has_changes = is_on();
    const std::uint64_t each = random_.between(1, 4);
    for (std::uint64_t i = 0; i < each; ++i) {
      if (has_partitions) {
        FaultPlan& partition = add_link_fault();
        partition.link.loss = 1;
        partition.link.is_filtered = i % 2 == 1;  // the sender gets an error
      }
      if (has_changes) {
        path::SimLink changed = draw_link();
        if (random_.chance(0.3)) changed.black_hole_above = static_cast<std::uint32_t>(one_of<3>({1232, 1372, 1472}));
        add_link_fault().link = changed;
      }
      if (has_pauses) add_host_fault(FaultPlan::Kind::pause);
      if (has_restarts) add_host_fault(FaultPlan::Kind::restart);
    }
  }

  FaultPlan& add_link_fault() {
    FaultPlan fault;
    fault.at = any_time();
    fault.lasting = any_length();
    fault.link = scenario_.link;
    fault.is_both_ways = random_.chance(0.5);
    fault.from = any_host();
    fault.to = other_host(fault.from);
    return scenario_.faults.emplace_back(fault);
  }

  void add_host_fault(FaultPlan::Kind kind) {
    FaultPlan fault;
    fault.kind = kind;
    fault.at = any_time();
    fault.lasting = any_length();
    fault.host = any_host();
    scenario_.faults.push_back(fault);
  }

  void draw_flows() {
    const std::uint64_t flows = random_.between(1, 2 * scenario_.hosts.size());
    const bool has_cancels = is_on(), has_misuses = is_on(), has_long = random_.chance(0.5);
    for (std::uint64_t i = 0; i < flows; ++i) {
      FlowPlan flow;
      flow.kind = static_cast<FlowPlan::Kind>(random_.below(4));
      flow.from = any_host();
      flow.to = random_.chance(0.03) ? flow.from : other_host(flow.from);
      flow.size_min = random_.chance(0.5) ? 0 : random_.mostly_small(1, 4096);
      flow.size_max = flow.size_min + random_.mostly_small(1, has_long ? 4u << 20 : 4096);
      flow.in_flight = static_cast<std::uint32_t>(random_.mostly_small(1, 64));
      const std::uint64_t mean_size = flow.is_mostly_small ? flow.size_min + (flow.size_max - flow.size_min) / 12 : 0;
      const std::uint64_t operations =
          std::clamp<std::uint64_t>(kBytesMax / flows / (mean_size + 1), 3, kOperationsMax / flows);
      flow.gap = scenario_.time / operations;
      if (is_on()) {  // all operations in a short time
        flow.start = any_time() / 2;
        flow.stop = flow.start + std::max<base::Duration>(scenario_.time / 20, 1ms);
        flow.gap = (flow.stop - flow.start) / operations;
      }
      if (has_cancels) flow.cancels = 0.2;
      if (has_misuses) flow.misuses = 0.1;
      scenario_.flows.push_back(flow);
    }
  }

  void draw_replacements() {
    const std::uint64_t count = random_.between(1, 6);
    for (std::uint64_t i = 0; i < count; ++i) add_host_fault(FaultPlan::Kind::replace);
  }

  /// Adds a process that lies, and conversations with it.
  void draw_liar() {
    const auto liar = static_cast<std::uint32_t>(scenario_.hosts.size());
    scenario_.hosts.push_back(scenario_.hosts.front());
    for (std::uint64_t lives = random_.between(1, 3); lives > 0; --lives) {
      add_host_fault(FaultPlan::Kind::lie);
      scenario_.faults.back().host = liar;
    }
    for (std::uint64_t flows = random_.between(1, 4); flows > 0; --flows) {
      FlowPlan flow = scenario_.flows[random_.below(scenario_.flows.size())];
      (random_.chance(0.5) ? flow.from : flow.to) = liar;
      scenario_.flows.push_back(flow);
    }
  }

  void draw_seals() {
    if (!is_on()) return;
    scenario_.seals = random_.chance(0.5) ? Seals::shared_secret : Seals::static_keys;
    if (random_.chance(0.7)) set(Option::seal_rekey_bytes, one_of<3>({64 << 10, 256 << 10, 2 << 20}));
    if (is_on()) set(Option::seal_rekey_after, random_.mostly_small(1, 60));
  }

  Random random_;
  Scenario scenario_;
};

}  // namespace

Scenario draw_scenario(std::uint64_t seed) {
  return Swarm(seed).draw();
}

}  // namespace fairlead::sim
