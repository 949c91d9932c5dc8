#include "sim/world.hpp"

#include <algorithm>

#include "sim/addresses.hpp"
#include "sim/invariants.hpp"

namespace fairlead::sim {
namespace {

constexpr base::Duration kDrainPatience = 30s;  // in addition to the give-up time; without any progress
constexpr base::Duration kWindDownPatience = 60s;
constexpr base::Duration kSilenceAfter = 30s;  // for timers of idle peers and late duplicates

}  // namespace

World::World(const Scenario& scenario, std::uint64_t seed, std::FILE* trace, bool is_sampled)
    : scenario_(scenario),
      trace_(trace),
      ledger_(findings_),
      sabotage_(scenario.sabotage),
      rare_(seed),
      random_(seed),
      network_(random_.next()) {
  if (scenario_.is_one_machine) machine_.emplace();
  for (const FaultPlan& fault : scenario_.faults)
    if (fault.kind == FaultPlan::Kind::lie) ledger_.distrust(fault.host);
  set_links();
  hosts_.reserve(scenario_.hosts.size());
  for (std::uint32_t number = 0; number < scenario_.hosts.size(); ++number)
    hosts_.emplace_back(number, scenario_.hosts[number], network_, machine_ ? &*machine_ : nullptr, shared(),
                        random_.next());
  for (std::uint32_t number = 0; number < scenario_.flows.size(); ++number)
    flows_.emplace_back(number, scenario_.flows[number], kBegin, scenario_.time, random_.next());
  schedule_faults();
  if (is_sampled) samples_.emplace(scenario_, kBegin, scenario_.time);
}

void World::set_links() {
  network_.set_default_link(scenario_.link);
  for (const LinkPlan& plan : scenario_.links) {
    for (std::uint32_t from = 0; from < scenario_.hosts.size(); ++from) {
      for (std::uint32_t to = 0; to < scenario_.hosts.size(); ++to) {
        if ((plan.from == kEveryHost || plan.from == from) && (plan.to == kEveryHost || plan.to == to))
          network_.set_link(address_of(from), address_of(to), plan.link);
      }
    }
  }
}

Report World::run() {
  base::rare_branches = scenario_.has_rare_branches ? &rare_ : nullptr;
  for (Host& host : hosts_) host.start(now_);
  run_until(kBegin + scenario_.time, [] { return false; });
  run_until(base::kNever, [&] { return changes_.empty() && awaited_.empty(); });
  run_drain();
  run_wind_down();
  run_silence();
  base::rare_branches = nullptr;
  if (findings_.is_clean()) {
    for (std::uint32_t number = 0; number < hosts_.size(); ++number)
      check_nothing_left(hosts_[number], number, shared());
    check_all_arrived(hosts_, shared());
    check_excuses(kBegin, shared());
    check_expectation(hosts_, flows_, kBegin, shared());
    const Resends before = resends_learning_.value_or(resends()), after = resends();
    SIM_CHECK(findings_, after.all() - before.all() <= scenario_.expect.resends_after_most,
              "{} segments were sent again after {}, at most {} should be: {} by threshold, {} by probes",
              after.all() - before.all(), to_text(scenario_.expect.resends_after), scenario_.expect.resends_after_most,
              after.fast - before.fast, after.probe - before.probe);
  }
  return report();
}

Report World::report() {
  Report report{.finding = findings_.first(), .hash = trace_.hash(), .events = trace_.events(), .time = now_ - kBegin};
  for (const Operation& operation : ledger_.operations()) {
    if (operation.flow != kNoFlow && operation.state == Operation::State::ended) ++report.ends[operation.status];
  }
  for (Host& host : hosts_) {
    if (!host.is_up()) continue;
    report.replacements += host.replacements();
    report.datagrams += host.engine()->link()->counters().datagrams_sent;
  }
  report.resends = resends().all();
  report.lies = liars_.told();
  report.liars_expelled = liars_.expelled();
  report.rare = rare_.counts();
  return report;
}

World::Resends World::resends() {
  Resends sum;
  for (Host& host : hosts_) {
    if (!host.is_up()) continue;
    const link::LinkCounters& link = host.engine()->link()->counters();
    sum.fast += link.resends_fast;
    sum.probe += link.resends_probe;
    sum.other += link.resends - link.resends_fast - link.resends_probe;
  }
  return sum;
}

// Steps --------------------------------------------------------------------------------------------------------------

template <typename IsOver>
void World::run_until(base::Instant limit, IsOver&& is_over) {
  while (findings_.is_clean() && !is_over()) {
    const base::Instant next = next_moment();
    if (next > limit || next == base::kNever) {
      if (limit != base::kNever) now_ = std::max(now_, limit);
      return;
    }
    now_ = std::max(now_, next);
    step();
  }
}

base::Instant World::next_moment() const {
  base::Instant next = network_.next_event();
  for (const Host& host : hosts_) next = std::min(next, host.next_turn());
  for (const Flow& flow : flows_) next = std::min(next, flow.next_at());
  next = std::min(next, liars_.next_at());
  if (!changes_.empty()) next = std::min(next, changes_.begin()->first);
  if (!awaited_.empty()) next = std::min(next, awaited_.begin()->first);
  // Samples alone do not keep the world going.
  const bool is_sampling = samples_ && (now_ < kBegin + scenario_.time || !is_drained());
  if (is_sampling && next != base::kNever) next = std::min(next, samples_->next_at());
  return next;
}

void World::step() {
  while (!changes_.empty() && changes_.begin()->first <= now_) {
    const Change change = changes_.begin()->second;
    changes_.erase(changes_.begin());
    change.is_end ? heal(scenario_.faults[change.fault]) : begin(scenario_.faults[change.fault]);
  }
  if (network_.next_event() <= now_) {
    network_.advance(now_);
    for (Host& host : hosts_) host.on_network(now_);
  }
  for (std::uint32_t number = 0; number < hosts_.size(); ++number) {
    Host& host = hosts_[number];
    if (!host.is_up() || host.next_turn() > now_) continue;
    host.turn(now_);
    hand_out_ended(host);
    check_host(host, number, shared());
    liars_.check(number, host.engine(), findings_);
  }
  for (std::uint32_t number = 0; number < flows_.size(); ++number) {
    if (flows_[number].next_at() <= now_) turn_flow(number);
  }
  if (liars_.next_at() <= now_) liars_.turn(processes(), now_, findings_);
  for (Host& host : hosts_) host.on_doorbell(now_);
  while (!awaited_.empty() && awaited_.begin()->first <= now_) {
    const Awaited awaited = awaited_.begin()->second;
    awaited_.erase(awaited_.begin());
    // An ended operation may wait in the event queue of a slow application.
    Host& from = hosts_[flows_[awaited.flow].plan().from];
    const bool is_behind = from.is_up() && from.application()->has_events();
    SIM_CHECK(findings_,
              flows_[awaited.flow].in_flight() == 0 || is_behind || progress_of(awaited.flow) != awaited.progress,
              "flow {} (host {} to {}) has not moved in {} since a fault was healed", awaited.flow,
              flows_[awaited.flow].plan().from, flows_[awaited.flow].plan().to, to_text(scenario_.resumes_within));
  }
  if (samples_ && samples_->next_at() <= now_) samples_->take(hosts_, now_);
  const base::Duration learning = scenario_.expect.resends_after;
  if (learning.count() != 0 && !resends_learning_ && now_ >= kBegin + learning) resends_learning_ = resends();
}

void World::turn_flow(std::uint32_t number) {
  Flow& flow = flows_[number];
  Host& from = hosts_[flow.plan().from];
  Host& to = hosts_[flow.plan().to];
  if (from.is_being_replaced()) return flow.put_off(now_ + 1ms);
  if (!from.is_awake(now_)) return flow.put_off(std::max(from.paused_until(), now_ + 1ms));
  // A paused target exposes nothing new.
  if (!to.is_awake(now_) && to.is_up()) {
    if (flow.plan().kind != FlowPlan::Kind::message) return flow.put_off(std::max(to.paused_until(), now_ + 1ms));
  }
  flow.submit(*from.application(), to.application(), now_);
  from.on_submission(now_);
  if (to.is_up()) to.on_submission(now_);
}

std::vector<Liars::Process> World::processes() {
  std::vector<Liars::Process> processes;
  for (Host& host : hosts_) processes.push_back({host.engine(), host.paused_until()});
  return processes;
}

void World::hand_out_ended(Host& host) {
  for (const std::uint64_t number : host.application()->take_ended()) {
    const Operation& operation = *ledger_.find(number);
    flows_[operation.flow].ended(operation);
    // The owner of memory exposed for it takes it back some time later, unless it was used.
    const Operation* exposure = ledger_.find(operation.partner);
    if (exposure == nullptr || exposure->state != Operation::State::pending) continue;
    Host& owner = hosts_[exposure->host];
    owner.application()->cancel_later(*exposure, now_ + random_.between(0ms, 20ms));
    owner.on_submission(now_);
  }
}

// Faults -------------------------------------------------------------------------------------------------------------

void World::schedule_faults() {
  for (std::size_t index = 0; index < scenario_.faults.size(); ++index) {
    const FaultPlan& fault = scenario_.faults[index];
    changes_.emplace(kBegin + fault.at, Change{index, false});
    if (fault.lasting.count() != 0) changes_.emplace(kBegin + fault.at + fault.lasting, Change{index, true});
  }
}

void World::begin(const FaultPlan& fault) {
  switch (fault.kind) {
    case FaultPlan::Kind::link:
      trace_.say(now_, "          the link from {} to {} changes", fault.from, fault.to);
      return set_fault_link(fault, false);
    case FaultPlan::Kind::pause:
      trace_.say(now_, "h{}        pauses", fault.host);
      return hosts_[fault.host].pause(now_ + fault.lasting);
    case FaultPlan::Kind::replace:
      if (!hosts_[fault.host].is_up()) return;
      trace_.say(now_, "h{}        is to be replaced", fault.host);
      hosts_[fault.host].replace(now_ + fault.lasting);
      return hosts_[fault.host].on_submission(now_);
    case FaultPlan::Kind::restart: {
      Host& host = hosts_[fault.host];
      if (!host.is_up()) return;  // another fault has killed it already
      if (fault.is_orderly) host.take_leave(now_);
      return kill(fault.host);
    }
    case FaultPlan::Kind::lie:
      trace_.say(now_, "h{}        begins to lie", fault.host);
      return liars_.begin(fault.host, now_, now_ + fault.lasting, random_.next());
  }
}

void World::kill(std::uint32_t number) {
  hosts_[number].kill(now_);
  for (Flow& flow : flows_) {
    if (flow.plan().from == number) flow.all_gone();
  }
  // Exposures that wait for operations of the killed process are taken back.
  for (const Operation& gone : ledger_.operations()) {
    const Operation* exposure = gone.state == Operation::State::gone ? ledger_.find(gone.partner) : nullptr;
    if (exposure == nullptr || exposure->state != Operation::State::pending) continue;
    hosts_[exposure->host].application()->cancel_later(*exposure, now_ + random_.between(0ms, 20ms));
    hosts_[exposure->host].on_submission(now_);
  }
}

void World::heal(const FaultPlan& fault) {
  switch (fault.kind) {
    case FaultPlan::Kind::link:
      trace_.say(now_, "          the link from {} to {} is as before", fault.from, fault.to);
      set_fault_link(fault, true);
      break;
    case FaultPlan::Kind::pause:
    case FaultPlan::Kind::replace:
      break;
    case FaultPlan::Kind::restart:
      if (!hosts_[fault.host].is_up()) hosts_[fault.host].start(now_);
      break;
    case FaultPlan::Kind::lie:
      liars_.end(fault.host);
      if (hosts_[fault.host].is_up()) kill(fault.host);
      hosts_[fault.host].start(now_);
      break;
  }
  await_progress();
}

void World::set_fault_link(const FaultPlan& fault, bool is_end) {
  for (std::uint32_t from = 0; from < hosts_.size(); ++from) {
    for (std::uint32_t to = 0; to < hosts_.size(); ++to) {
      const auto meets = [&](std::uint32_t a, std::uint32_t b) {
        return (fault.from == kEveryHost || fault.from == a) && (fault.to == kEveryHost || fault.to == b);
      };
      if (from == to || !(meets(from, to) || (fault.is_both_ways && meets(to, from)))) continue;
      path::SimLink link = scenario_.link;
      for (const LinkPlan& plan : scenario_.links) {
        if ((plan.from == kEveryHost || plan.from == from) && (plan.to == kEveryHost || plan.to == to))
          link = plan.link;
      }
      network_.set_link(address_of(from), address_of(to), is_end ? link : fault.link);
    }
  }
}

void World::await_progress() {
  // Waits until the last of several overlapping faults has ended.
  const bool is_last = std::ranges::none_of(changes_, [](const auto& entry) { return entry.second.is_end; });
  if (!is_last) return;
  trace_.say(now_, "          all is healed");
  for (std::uint32_t number = 0; number < flows_.size(); ++number) {
    if (flows_[number].in_flight() != 0)
      awaited_.emplace(now_ + scenario_.resumes_within, Awaited{number, progress_of(number)});
  }
}

std::uint64_t World::progress_of(std::uint32_t number) {
  const Flow& flow = flows_[number];
  std::uint64_t progress = flow.ended_count();
  for (const std::uint32_t side : {flow.plan().from, flow.plan().to}) {
    if (hosts_[side].is_up()) progress += hosts_[side].bytes_delivered();
  }
  return progress;
}

// The end ------------------------------------------------------------------------------------------------------------

bool World::is_drained() const {
  return std::ranges::all_of(flows_, [](const Flow& flow) { return flow.in_flight() == 0; });
}

void World::run_drain() {
  const base::Duration patience =
      std::chrono::milliseconds(scenario_.options.get(engine::Option::give_up_after)) + kDrainPatience;
  while (findings_.is_clean() && !is_drained()) {
    std::uint64_t before = 0, after = 0;
    for (std::uint32_t flow = 0; flow < flows_.size(); ++flow) before += progress_of(flow);
    run_until(now_ + patience, [&] { return is_drained(); });
    for (std::uint32_t flow = 0; flow < flows_.size(); ++flow) after += progress_of(flow);
    if (is_drained() || before != after) continue;
    for (const Operation& operation : ledger_.operations()) {
      if (operation.flow == kNoFlow || operation.state != Operation::State::pending) continue;
      findings_.add("operation {} ({} bytes) of host {} to host {}, submitted at {}, never ends", operation.number,
                    operation.size, operation.host, operation.other_host, to_text(operation.submitted - kBegin));
    }
  }
}

void World::run_wind_down() {
  if (!findings_.is_clean()) return;
  for (Host& host : hosts_) {
    if (!host.is_up()) continue;
    host.application()->wind_down(now_);
    host.on_submission(now_);
  }
  const auto is_over = [&] {
    for (std::uint32_t number = 0; number < hosts_.size(); ++number) {
      if (ledger_.pending_of(number) != 0) return false;
    }
    return true;
  };
  run_until(now_ + kWindDownPatience, is_over);
  if (!findings_.is_clean() || is_over()) return;
  for (const Operation& operation : ledger_.operations()) {
    if (operation.state == Operation::State::pending)
      findings_.add("operation {} of host {} was cancelled, but never ends", operation.number, operation.host);
  }
}

void World::run_silence() {
  const base::Instant limit = now_ + kSilenceAfter;
  run_until(limit, [] { return false; });
  SIM_CHECK(findings_, next_moment() == base::kNever, "the world does not fall silent: something is due {} later",
            to_text(next_moment() - limit));
}

}  // namespace fairlead::sim
