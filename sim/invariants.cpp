#include "sim/invariants.hpp"

#include <algorithm>

namespace fairlead::sim {
namespace {

using engine::Option;

std::uint64_t window_of(const Scenario& scenario) {
  return scenario.options.get(Option::window_segments);
}

bool are_alike(const FlowPlan& a, const FlowPlan& b) {
  return a.kind == b.kind && a.to == b.to && a.size_max == b.size_max && a.in_flight == b.in_flight && a.gap == b.gap;
}

bool touches(const FaultPlan& fault, std::uint32_t host) {
  if (fault.kind != FaultPlan::Kind::link) return fault.host == host;
  return fault.from == kEveryHost || fault.to == kEveryHost || fault.from == host || fault.to == host;
}

}  // namespace

void check_host(Host& host, std::uint32_t number, Shared shared) {
  if (!host.is_up()) return;
  Findings& findings = shared.findings;
  host.engine()->check();
  const engine::EngineUse use = host.engine()->use();
  // An ended operation may still wait as an event. So the engine knows at most as many operations as the ledger.
  const std::uint64_t pending = shared.ledger.pending_of(number);
  SIM_CHECK(findings, use.operations <= pending, "host {}: the engine keeps {} operations, {} are pending", number,
            use.operations, pending);
  SIM_CHECK(findings, host.application()->has_events() || use.operations == pending,
            "host {}: {} operations are pending, the engine keeps {} and there is no event", number, pending,
            use.operations);
  const link::LinkCounters& link = host.engine()->link()->counters();
  const std::uint64_t peers = host.engine()->link()->peer_count();
  SIM_CHECK(findings, link.segments_in_flight <= peers * window_of(shared.scenario),
            "host {}: {} segments in flight to {} peers", number, link.segments_in_flight, peers);
  SIM_CHECK(findings, peers <= shared.scenario.hosts.size(), "host {}: {} peers in a world of {} hosts", number, peers,
            shared.scenario.hosts.size());
}

void check_nothing_left(Host& host, std::uint32_t number, Shared shared) {
  if (!host.is_up()) return;
  Findings& findings = shared.findings;
  const engine::EngineUse use = host.engine()->use();
  SIM_CHECK(findings, use.operations == 0 && use.placements == 0 && use.deferred == 0,
            "host {} is left with {} operations, {} placements, {} answers", number, use.operations, use.placements,
            use.deferred);
  const link::LinkCounters& link = host.engine()->link()->counters();
  SIM_CHECK(findings, link.messages_pending == 0 && link.segments_in_flight == 0,
            "host {}: the link is left with {} messages and {} segments in flight", number, link.messages_pending,
            link.segments_in_flight);
  SIM_CHECK(findings, host.next_turn() == base::kNever, "host {} is idle, but its engine wants a pass in {}", number,
            to_text(host.next_turn() - host.began()));
  host.application()->check_memory();
}

namespace {

/// Returns whether no buffer could take a long message; the receiver has counted it as dropped.
bool is_refused_for_length(const Operation& operation) {
  return operation.kind == OperationKind::send && operation.status == Status::no_buffer && operation.size > 65'536;
}

}  // namespace

void check_all_arrived(std::vector<Host>& hosts, Shared shared) {
  for (std::uint32_t number = 0; number < hosts.size(); ++number) {
    if (!hosts[number].is_up() || !shared.ledger.is_trusted(number)) continue;
    for (std::uint32_t port = 0; port < shared.scenario.ports; ++port) {
      const Ledger::Missing missing = shared.ledger.missing_at(number, port, hosts[number].began());
      const std::uint64_t dropped = hosts[number].application()->dropped_at(port);
      SIM_CHECK(shared.findings, missing.surely <= dropped,
                "host {} port {}: {} messages ended well, but never arrived; {} were dropped for want of a buffer",
                number, port, missing.surely, dropped);
      // A liar's messages may have been dropped, too.
      SIM_CHECK(shared.findings, dropped <= missing.surely + missing.perhaps || shared.ledger.has_liars(),
                "host {} port {}: {} messages were dropped, but only {} are missing", number, port, dropped,
                missing.surely + missing.perhaps);
    }
  }
  for (const Operation& put : shared.ledger.operations()) {
    if (put.kind != OperationKind::put || put.state != Operation::State::ended || put.status != Status::ok) continue;
    const Operation* exposure = shared.ledger.find(put.partner);
    if (!shared.ledger.is_trusted(put.host) || !shared.ledger.is_trusted(put.other_host)) continue;
    const bool is_seen = exposure->state == Operation::State::gone ||
                         (exposure->state == Operation::State::ended && exposure->status == Status::ok);
    SIM_CHECK(shared.findings, is_seen, "put {} of host {} ended well, but exposure {} of host {} did not: {}",
              put.number, put.host, exposure->number, exposure->host, to_string(exposure->status));
  }
}

void check_excuses(base::Instant began, Shared shared) {
  const Scenario& scenario = shared.scenario;
  // A fault has effects until all affected peers have given up.
  const base::Duration effect = std::chrono::milliseconds(2 * (scenario.options.get(Option::give_up_after) +
                                                               scenario.options.get(Option::unreachable_after))) +
                                5s;
  for (const Operation& operation : shared.ledger.operations()) {
    if (operation.flow == kNoFlow || operation.state != Operation::State::ended || operation.status == Status::ok ||
        operation.status == Status::canceled || operation.status == operation.misuse ||
        is_refused_for_length(operation))
      continue;
    const bool is_excused = std::ranges::any_of(scenario.faults, [&](const FaultPlan& fault) {
      if (fault.kind == FaultPlan::Kind::replace) return false;
      const base::Instant begin = began + fault.at;
      const base::Instant end = fault.lasting.count() == 0 ? base::kNever - effect : begin + fault.lasting;
      return begin <= operation.ended && operation.submitted <= end + effect &&
             (touches(fault, operation.host) || touches(fault, operation.other_host));
    });
    SIM_CHECK(shared.findings, is_excused,
              "operation {} ({} bytes) of host {} to host {}, submitted at {}, ended '{}' at {}: no fault excuses that",
              operation.number, operation.size, operation.host, operation.other_host,
              to_text(operation.submitted - began), to_string(operation.status), to_text(operation.ended - began));
  }
}

void check_expectation(std::vector<Host>& hosts, const std::vector<Flow>& flows, base::Instant began, Shared shared) {
  const Expectation& expect = shared.scenario.expect;
  Findings& findings = shared.findings;
  std::vector<bool> has_ended(static_cast<std::size_t>(Status::system) + 1);
  base::Instant last = began;
  std::uint64_t segments = 0, resends = 0;
  for (const Operation& operation : shared.ledger.operations()) {
    if (operation.flow == kNoFlow || operation.state != Operation::State::ended) continue;
    has_ended[static_cast<std::size_t>(operation.status)] = true;
    last = std::max(last, operation.ended);
    const bool is_harmless = operation.status == Status::canceled || is_refused_for_length(operation) ||
                             (operation.misuse != Status::ok && operation.status == operation.misuse);
    SIM_CHECK(findings, expect.ends.empty() || is_harmless || std::ranges::count(expect.ends, operation.status) != 0,
              "operation {} of host {} ended '{}', which this scenario does not expect", operation.number,
              operation.host, to_string(operation.status));
  }
  for (const Status status : expect.ends_some) {
    SIM_CHECK(findings, has_ended[static_cast<std::size_t>(status)], "no operation ended '{}', one should have",
              to_string(status));
  }
  for (std::uint32_t number = 0; number < hosts.size(); ++number) {
    if (!hosts[number].is_up()) continue;
    const link::LinkCounters& link = hosts[number].engine()->link()->counters();
    SIM_CHECK(findings, !expect.has_no_resends || link.resends == 0, "host {} sent {} segments again", number,
              link.resends);
    segments += link.segments_sent;
    resends += link.resends;
    const std::uint64_t needless = link.refused[static_cast<std::size_t>(link::Refusal::duplicate)] +
                                   link.refused[static_cast<std::size_t>(link::Refusal::too_old)];
    SIM_CHECK(findings, !expect.has_no_needless_resends || needless == 0, "host {} received {} segments a second time",
              number, needless);
    SIM_CHECK(
        findings,
        !hosts[number].plan().starts_before_wrap || link.segments_sent < 20'000 || hosts[number].path()->has_wrapped(),
        "host {} should have met the wrap of its sequence numbers", number);
  }
  const double resent = static_cast<double>(resends) / static_cast<double>(std::max<std::uint64_t>(segments, 1));
  SIM_CHECK(findings, expect.resends_max == 1 || resent <= expect.resends_max,
            "{} of {} segments were sent again, {:.3f} % are expected", resends, segments, 100 * expect.resends_max);
  if (flows.empty() || last == began) return;
  const double seconds = std::chrono::duration<double>(last - began).count();
  std::uint64_t bytes = 0, bytes_alike = 0, bytes_least = ~std::uint64_t{0}, alike = 0;
  for (const Flow& flow : flows) {
    bytes += flow.bytes_ok();
    if (!are_alike(flow.plan(), flows.back().plan())) continue;
    bytes_alike += flow.bytes_ok();
    bytes_least = std::min(bytes_least, flow.bytes_ok());
    ++alike;
  }
  if (expect.goodput_min > 0) {
    const auto rate = static_cast<double>(hosts[flows[0].plan().to].plan().downlink.bytes_per_second);
    const double share = static_cast<double>(bytes) / seconds / rate;
    SIM_CHECK(findings, share >= expect.goodput_min, "goodput is {:.1f} % of the downlink, {:.1f} % are expected",
              100 * share, 100 * expect.goodput_min);
  }
  if (expect.fair_share_min > 0) {
    const double share =
        static_cast<double>(bytes_least) * static_cast<double>(alike) / static_cast<double>(bytes_alike);
    SIM_CHECK(findings, share >= expect.fair_share_min, "the slowest flow has {:.2f} of its share, {:.2f} is expected",
              share, expect.fair_share_min);
  }
  if (expect.latency_p99_max_of_idle > 0) {
    const Flow& flow = flows[expect.latency_flow];
    std::vector<base::Duration> latencies = flow.latencies();
    if (latencies.empty()) return findings.add("flow {} has no latency: nothing of it ended well", expect.latency_flow);
    std::ranges::sort(latencies);
    const base::Duration p99 = latencies[latencies.size() * 99 / 100];
    const double ratio =
        static_cast<double>(p99.count()) / static_cast<double>((2 * shared.scenario.link.delay).count());
    SIM_CHECK(findings, ratio <= expect.latency_p99_max_of_idle,
              "99 % of flow {} take up to {}: {:.1f} idle round trips, {:.1f} are expected", expect.latency_flow,
              to_text(p99), ratio, expect.latency_p99_max_of_idle);
  }
}

}  // namespace fairlead::sim
