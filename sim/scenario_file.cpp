#include "sim/scenario_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "sim/scenario_section.hpp"

namespace fairlead::sim {
namespace {

constexpr std::uint32_t kAny = std::numeric_limits<std::uint32_t>::max();

void read_link(ScenarioSection& section, path::SimLink& link) {
  section.read("delay", link.delay);
  section.read("reorder_delay", link.reorder_delay);
  section.read("duplicate_delay", link.duplicate_delay);
  section.read_share("loss", link.loss);
  section.read("loss_burst", link.loss_burst, 1, 10'000);
  section.read("loss_every", link.loss_every, 0, kAny);
  section.read_share("duplication", link.duplication);
  section.read_share("reordering", link.reordering);
  section.read_share("corruption", link.corruption);
  section.read_rate("rate", link.bytes_per_second);
  section.read_bytes("queue", link.queue_bytes_max);
  section.read("is_senders_own", link.is_senders_own);
  section.read("datagram_size", link.datagram_size_max, 1200, 65'000);
  section.read("is_filtered", link.is_filtered);
  section.read("black_hole_above", link.black_hole_above, 0, 65'000);
}

void read_host(ScenarioSection& section, HostPlan& host) {
  section.read("pass_time", host.pass_time);
  section.read("wake_time", host.wake_time);
  section.read("look_every", host.look_every);
  section.read("events_per_look", host.events_per_look, 1, 1 << 20);
  section.read_bytes("receive_buffer", host.receive_buffer_bytes);
  section.read("receives_posted", host.receives_posted, 1, 4096);
  section.read("messages_per_receive", host.messages_per_receive, 1, 4096);
  section.read("merges_arrivals", host.merges_arrivals);
  section.read("starts_before_wrap", host.starts_before_wrap);
  section.read_rate("downlink_rate", host.downlink.bytes_per_second);
  section.read_bytes("downlink_queue", host.downlink.queue_bytes_max);
  if (host.pass_time < 100ns) section.fail("pass_time", "want at least 100ns, else virtual time stands still");
}

void read_hosts(ScenarioSection& root, Scenario& scenario) {
  std::uint32_t count = 2;
  root.read("hosts", count, 1, kHostsMax);
  HostPlan usual;
  root.object("host", [&](ScenarioSection& section) { read_host(section, usual); });
  scenario.hosts.assign(count, usual);
  root.each("host_differs", [&](ScenarioSection& section) {
    std::uint32_t number = 0;
    section.read_host("host", number, count, false);
    read_host(section, scenario.hosts[number]);
  });
}

void read_fault(ScenarioSection& section, const Scenario& scenario, FaultPlan& fault) {
  const auto hosts = static_cast<std::uint32_t>(scenario.hosts.size());
  fault.link = scenario.link;
  section.read("at", fault.at);
  section.read("lasting", fault.lasting);
  switch (section.read_word("kind", {"link", "partition", "pause", "restart", "replace", "lie"}, 0)) {
    case 0:
      read_link(section, fault.link);
      break;
    case 1:
      fault.link.loss = 1;
      break;
    case 2:
      fault.kind = FaultPlan::Kind::pause;
      break;
    case 3:
      fault.kind = FaultPlan::Kind::restart;
      break;
    case 4:
      fault.kind = FaultPlan::Kind::replace;
      break;
    case 5:
      fault.kind = FaultPlan::Kind::lie;
      if (!scenario.is_one_machine) section.fail("kind", "a process lies in shared memory: want \"one_machine\": true");
      break;
  }
  if (fault.kind == FaultPlan::Kind::link) {
    section.read_host("from", fault.from, hosts, true);
    section.read_host("to", fault.to, hosts, true);
    section.read("both_ways", fault.is_both_ways);
  } else {
    section.read_host("host", fault.host, hosts, false);
    if (fault.kind == FaultPlan::Kind::restart) section.read("orderly", fault.is_orderly);
    if (fault.lasting <= 0ns) section.fail("lasting", "want how long the host is away, e.g. 5s");
  }
}

void read_flow(ScenarioSection& section, const Scenario& scenario, FlowPlan& flow) {
  const auto hosts = static_cast<std::uint32_t>(scenario.hosts.size());
  flow.kind = static_cast<FlowPlan::Kind>(section.read_word("kind", {"message", "put", "get", "mixed"}, 0));
  section.read_host("from", flow.from, hosts, true);
  section.read_host("to", flow.to, hosts, false);
  section.read_range("size", flow.size_min, flow.size_max);
  section.read("mostly_small", flow.is_mostly_small);
  section.read("in_flight", flow.in_flight, 1, 4096);
  section.read("gap", flow.gap);
  section.read("start", flow.start);
  section.read("stop", flow.stop);
  section.read_share("cancels", flow.cancels);
  section.read_share("misuses", flow.misuses);
  if (flow.size_max > (64u << 20)) section.fail("size", "want at most 64MiB");
}

void read_flows(ScenarioSection& root, Scenario& scenario) {
  root.each("flows", [&](ScenarioSection& section) {
    FlowPlan flow;
    read_flow(section, scenario, flow);
    if (flow.from != kEveryHost) {
      scenario.flows.push_back(flow);
      return;
    }
    for (flow.from = 0; flow.from < scenario.hosts.size(); ++flow.from) {
      if (flow.from != flow.to) scenario.flows.push_back(flow);
    }
  });
}

std::optional<Status> status_named(std::string_view name) {
  for (auto status = Status::ok; status <= Status::system;
       status = static_cast<Status>(std::to_underlying(status) + 1)) {
    if (to_string(status) == name) return status;
  }
  return std::nullopt;
}

void read_statuses(ScenarioSection& section, std::string_view key, std::vector<Status>& out) {
  for (const std::string& word : section.read_words(key)) {
    const auto status = status_named(word);
    if (!status)
      return section.fail(key, fmt::format("'{}' is no status: want words like ok, silent, restarted", word));
    out.push_back(*status);
  }
}

void read_expectation(ScenarioSection& section, const Scenario& scenario, Expectation& expect) {
  read_statuses(section, "ends", expect.ends);
  read_statuses(section, "ends_some", expect.ends_some);
  section.read("no_resends", expect.has_no_resends);
  section.read_share("resends_max", expect.resends_max);
  section.read("no_needless_resends", expect.has_no_needless_resends);
  section.read("resends_after", expect.resends_after);
  section.read("resends_after_most", expect.resends_after_most, 0, ~std::uint32_t{0});
  section.read_share("goodput_min", expect.goodput_min);
  section.read_share("fair_share_min", expect.fair_share_min);
  section.read_number("latency_p99_max_of_idle", expect.latency_p99_max_of_idle);
  section.read("latency_flow", expect.latency_flow, 0, scenario.flows.empty() ? 0 : scenario.flows.size() - 1);
}

void read_options(ScenarioSection& section, engine::EngineOptions& options) {
  section.each_pair([&](std::string_view key, const std::string& value) {
    if (auto set = options.set(key, value); !set) section.fail(key, set.error().message);
  });
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, std::string name) {
  const auto fail = [&](std::string_view what) {
    return std::unexpected(Error{Status::invalid, 0, fmt::format("scenario {}: {}", name, what)});
  };
  nlohmann::json file;
  try {
    file = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    return fail(fmt::format("no valid JSON: {}", error.what()));
  }

  Scenario scenario;
  scenario.name = name;
  std::optional<Error> error;
  ScenarioSection root(file, "", error);
  root.read("title", scenario.title);
  root.read("time", scenario.time);
  root.read("resumes_within", scenario.resumes_within);
  root.read("ports", scenario.ports, 1, 64);
  root.read("rare_branches", scenario.has_rare_branches);
  root.read("clock_offsets", scenario.has_clock_offsets);
  root.read("one_machine", scenario.is_one_machine);
  scenario.seals = static_cast<Seals>(root.read_word("seals", {"none", "shared_secret", "static_keys"}, 0));
  root.object("options", [&](ScenarioSection& section) { read_options(section, scenario.options); });
  root.object("link", [&](ScenarioSection& section) { read_link(section, scenario.link); });
  read_hosts(root, scenario);
  const auto hosts = static_cast<std::uint32_t>(scenario.hosts.size());
  root.each("links", [&](ScenarioSection& section) {
    LinkPlan plan;
    plan.link = scenario.link;
    section.read_host("from", plan.from, hosts, true);
    section.read_host("to", plan.to, hosts, true);
    read_link(section, plan.link);
    scenario.links.push_back(plan);
  });
  root.each("faults", [&](ScenarioSection& section) { read_fault(section, scenario, scenario.faults.emplace_back()); });
  read_flows(root, scenario);
  root.object("expect", [&](ScenarioSection& section) { read_expectation(section, scenario, scenario.expect); });
  root.finish();
  if (error) return fail(error->message);
  if (scenario.flows.empty()) return fail("flows: want at least one, else nothing happens");
  return scenario;
}

Result<Scenario> read_scenario(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return std::unexpected(Error{Status::system, errno,
                                 fmt::format("cannot read {}: give a file such as sim/scenarios/lossless.json", path)});
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_scenario(text, std::filesystem::path(path).stem().string());
}

}  // namespace fairlead::sim
