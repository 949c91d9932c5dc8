// fairlead-sim runs simulated worlds from seeds, and prints how to replay a failed one.

#include <fmt/format.h>

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sim/net_swarm.hpp"
#include "sim/pair_swarm.hpp"
#include "sim/plot.hpp"
#include "sim/scenario_file.hpp"
#include "sim/swarm.hpp"
#include "sim/world.hpp"

namespace {

using namespace fairlead;

struct Wishes {
  std::uint64_t seed = 1;
  std::uint64_t seeds = 1;
  double hours = 0;
  std::string scenario;
  std::string svg;
  std::string swarm = "engines";
  bool has_trace = false;
};

struct Totals {
  std::uint64_t runs = 0, failed = 0, events = 0, datagrams = 0, resends = 0, lies = 0, liars_expelled = 0;
  base::Duration time{};
  std::map<Status, std::uint64_t> ends;
  std::map<std::string_view, base::RareBranches::Count> rare;
};

// A violated invariant ends the process. The signal handler then prints how to reproduce the run.
char last_words[512];
std::size_t last_words_size = 0;

void say_last_words(int signal) {
  static_cast<void>(!::write(STDERR_FILENO, last_words, last_words_size));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::string replay_command(const Wishes& wishes, std::uint64_t seed) {
  return fmt::format("./dev sim --seed {}{}{}{}{}", seed, wishes.scenario.empty() ? "" : " --scenario ",
                     wishes.scenario, wishes.swarm == "engines" ? "" : " --swarm ",
                     wishes.swarm == "engines" ? "" : wishes.swarm);
}

void prepare_last_words(const Wishes& wishes, std::uint64_t seed) {
  const auto text = fmt::format("died with seed {}\n  replay: {}\n", seed, replay_command(wishes, seed));
  last_words_size = text.copy(last_words, sizeof(last_words));
}

void add(Totals& totals, const sim::Report& report) {
  totals.runs += 1;
  totals.failed += report.finding.has_value();
  totals.events += report.events;
  totals.datagrams += report.datagrams;
  totals.resends += report.resends;
  totals.lies += report.lies;
  totals.liars_expelled += report.liars_expelled;
  totals.time += report.time;
  for (const auto& [status, count] : report.ends) totals.ends[status] += count;
  for (const auto& [place, count] : report.rare) {
    totals.rare[place].met += count.met;
    totals.rare[place].taken += count.taken;
  }
}

std::string ends_text(const std::map<Status, std::uint64_t>& ends) {
  std::string text;
  for (const auto& [status, count] : ends)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, to_string(status));
  return text.empty() ? "none" : text;
}

/// Runs the swarms of the public interfaces.
bool run_face_seed(const Wishes& wishes, std::uint64_t seed, Totals& totals) {
  prepare_last_words(wishes, seed);
  sim::Report common;
  std::uint64_t begun = 0, ended_well = 0;
  if (wishes.swarm == "net") {
    const sim::NetReport report = sim::run_net_swarm(seed);
    common = {.finding = report.finding, .hash = report.hash, .time = report.time};
    begun = report.operations;
    ended_well = report.succeeded;
  } else {
    const sim::PairReport report = sim::run_pair_swarm(seed);
    common = {.finding = report.finding, .hash = report.hash, .time = report.time};
    common.lies = report.lies;
    common.liars_expelled = report.liars_expelled;
    begun = report.succeeded + report.failed + report.active_sent;
    ended_well = report.succeeded + report.active_answered;
  }
  common.events = begun;
  common.ends[Status::ok] = ended_well;
  add(totals, common);
  if (wishes.seeds == 1 && wishes.hours == 0) {
    fmt::print("{}, seed {}: {} simulated, {} operations, {} ended well; hash {:016x}\n", wishes.swarm, seed,
               sim::to_text(common.time), begun, ended_well, common.hash);
  }
  if (common.finding)
    fmt::print("FOUND with seed {}: {}\n  replay: {}\n", seed, *common.finding, replay_command(wishes, seed));
  return !common.finding;
}

bool run_seed(const Wishes& wishes, const std::optional<sim::Scenario>& scenario, std::uint64_t seed, Totals& totals) {
  prepare_last_words(wishes, seed);
  const sim::Scenario plan = scenario ? *scenario : sim::draw_scenario(seed);
  sim::World world(plan, seed, wishes.has_trace ? stdout : nullptr, !wishes.svg.empty());
  const sim::Report report = world.run();
  add(totals, report);
  if (wishes.seeds == 1 && wishes.hours == 0) {
    fmt::print("{}, seed {}: {} simulated, {} events, operations ended: {}; {} datagrams, {} resent; hash {:016x}\n",
               plan.name, seed, sim::to_text(report.time), report.events, ends_text(report.ends), report.datagrams,
               report.resends, report.hash);
  }
  if (report.finding)
    fmt::print("FOUND with seed {}: {}\n  replay: {}\n", seed, *report.finding, replay_command(wishes, seed));
  if (!wishes.svg.empty() && world.samples() != nullptr) {
    if (auto drawn = write_svg(*world.samples(), plan, wishes.svg); !drawn) {
      fmt::print(stderr, "{}\n", drawn.error().message);
      return false;
    }
  }
  return !report.finding;
}

void print_totals(const Totals& totals) {
  fmt::print(
      "{} runs, {:.2f} simulated hours, {} events; operations ended: {}; {} datagrams, {} resent; {} runs failed\n",
      totals.runs, std::chrono::duration<double>(totals.time).count() / 3600, totals.events, ends_text(totals.ends),
      totals.datagrams, totals.resends, totals.failed);
  if (totals.lies > 0) fmt::print("  {} lies, {} expulsions of liars\n", totals.lies, totals.liars_expelled);
  for (const auto& [place, count] : totals.rare)
    fmt::print("  rare branch '{}': met {} times, taken {}\n", place, count.met, count.taken);
}

int run(const Wishes& wishes) {
  std::optional<sim::Scenario> scenario;
  if (!wishes.scenario.empty()) {
    auto read = sim::read_scenario(wishes.scenario);
    if (!read) {
      fmt::print(stderr, "{}\n", read.error().message);
      return 2;
    }
    scenario = std::move(*read);
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) std::signal(signal, say_last_words);
  const auto wanted = base::Duration(static_cast<std::int64_t>(wishes.hours * 3600e9));
  Totals totals;
  bool is_clean = true;
  for (std::uint64_t seed = wishes.seed; totals.runs < wishes.seeds || totals.time < wanted; ++seed) {
    is_clean &=
        wishes.swarm == "engines" ? run_seed(wishes, scenario, seed, totals) : run_face_seed(wishes, seed, totals);
  }
  if (totals.runs > 1) print_totals(totals);
  return is_clean ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Simulates whole engines on virtual time; see docs/simulation.md.", "fairlead-sim");
  Wishes wishes;
  app.add_option("--seed", wishes.seed, "the first seed (1); the same seed gives the same run");
  app.add_option("--scenario", wishes.scenario,
                 "a file of sim/scenarios; without it each seed draws a world of its own");
  app.add_option("--seeds", wishes.seeds, "how many seeds, one after the other (1)");
  app.add_option("--hours", wishes.hours, "further seeds until so much time has been simulated altogether");
  app.add_option("--swarm", wishes.swarm,
                 "what a seed draws: engines, net (the net face) or pairs (queue pairs, active messages)")
      ->check(CLI::IsMember({"engines", "net", "pairs"}));
  app.add_flag("--trace", wishes.has_trace, "print each event");
  app.add_option("--svg", wishes.svg, "plot window, round trip and goodput of the run into this file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  return run(wishes);
}
