// `fairlead nettest agent|console`: command-line options, and the runs.
#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tools/base/address.hpp"
#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/base/interrupt.hpp"
#include "tools/nettest/agent.hpp"
#include "tools/nettest/console.hpp"
#include "tools/nettest/report.hpp"

namespace fairlead::tools {
namespace {

constexpr Duration kObeyPiece = std::chrono::milliseconds{100};
constexpr Duration kTimeDefault = std::chrono::seconds{10};
constexpr auto kTimeMax = std::chrono::hours{24 * 365};

struct NettestAgentOptions {
  std::string address = "127.0.0.1";
  std::vector<std::pair<std::string, std::string>> engine;
};

struct NettestConsoleOptions {
  std::string address;
  NettestConsole::Parties parties;
  std::string type = "ping";
  NettestPlan plan;
  Duration time{};  // 0: not given
  bool is_json = false;
  bool is_quiet = false;
  bool shows_agents = false;
  std::vector<std::pair<std::string, std::string>> engine;
};

Result<std::string> agent_address(std::string_view text) {
  return look_up_address(text, {.tmid = "13"});
}

Result<> complete_all(std::vector<std::string>& addresses) {
  for (std::string& address : addresses) {
    auto full = agent_address(address);
    if (!full) return std::unexpected(std::move(full.error()));
    address = std::move(*full);
  }
  return {};
}

Result<> complete(NettestConsoleOptions& options) {
  NettestConsole::Parties& parties = options.parties;
  for (auto* const addresses : {&parties.clients, &parties.servers})
    if (auto completed = complete_all(*addresses); !completed) return completed;
  std::set<std::string> all(parties.clients.begin(), parties.clients.end());
  all.insert(parties.servers.begin(), parties.servers.end());
  if (all.size() != parties.clients.size() + parties.servers.size())
    return std::unexpected(Error{Status::invalid, 0, "an agent appears twice among the clients and servers"});
  if (options.address.empty()) {
    auto nid = nid_towards(parties.servers.front());
    if (!nid) return std::unexpected(std::move(nid.error()));
    options.address = std::move(*nid);
  }
  auto own = look_up_address(options.address, {.pid = "*", .tmid = "*"});
  if (!own) return std::unexpected(std::move(own.error()));
  options.address = std::move(*own);
  options.plan.is_bulk = options.type == "bulk";
  options.plan.clients = static_cast<std::uint32_t>(parties.clients.size());
  options.plan.servers = static_cast<std::uint32_t>(parties.servers.size());
  if (options.time == Duration::zero()) options.time = options.plan.count == 0 ? kTimeDefault : Duration(kTimeMax);
  return options.plan.check();
}

/// Prints the commands to run on the hosts, for users who start them by hand or by a script.
void show_agents(const NettestConsole::Parties& parties) {
  for (const auto* const addresses : {&parties.servers, &parties.clients})
    for (const std::string& address : *addresses)
      fmt::print("ssh {} fairlead nettest agent --address '{}'\n", address.substr(0, address.find('@')), address);
}

int run_agent(const NettestAgentOptions& options) {
  catch_interrupts();
  const auto address = agent_address(options.address);
  if (!address) return report_error(address.error());
  auto domain = net::Domain::open({.engine = options.engine});
  if (!domain) return report_error(domain.error());
  NettestAgent agent(*domain);
  if (auto started = agent.start(*address); !started) return report_error(started.error());
  fmt::print("agent at {}, Ctrl-C ends it\n", agent.address());
  std::fflush(stdout);
  while (!is_interrupted() && !agent.has_lost_engine()) agent.serve(kObeyPiece);
  return agent.has_lost_engine() ? report_error(lost_host_engine()) : kExitOk;
}

int run_console(NettestConsoleOptions options) {
  if (auto completed = complete(options); !completed) return report_error(completed.error());
  if (options.shows_agents) {
    show_agents(options.parties);
    return kExitOk;
  }
  catch_interrupts();
  auto domain = net::Domain::open({.engine = options.engine});
  if (!domain) return report_error(domain.error());
  NettestConsole console(*domain);
  if (auto started = console.start(options.address); !started) return report_error(started.error());
  NettestState before;
  const auto state = console.run(options.plan, options.parties, options.time, [&](const NettestState& now) {
    if (!options.is_quiet && !options.is_json) fmt::print("{}\n", nettest_line(now, before));
    std::fflush(stdout);
    before = now;
  });
  if (!state) return report_error(state.error());
  fmt::print("{}", options.is_json ? nettest_json(options.plan, *state) : nettest_report(options.plan, *state));
  if (has_faults(*state)) return kExitFailed;
  return state->is_interrupted ? kExitInterrupted : kExitOk;
}

void add_agent(CLI::App& nettest, int& exit_code) {
  const auto options = std::make_shared<NettestAgentOptions>();
  CLI::App* app = nettest.add_subcommand("agent", "execute the commands of a console, until Ctrl-C");
  app->add_option("--address", options->address, "own address, or its first parts [127.0.0.1@udp:20480:39:13]")
      ->type_name("ADDRESS");
  add_engine_settings(*app, options->engine);
  app->callback([options, &exit_code] { exit_code = run_agent(*options); });
}

void add_console(CLI::App& nettest, int& exit_code) {
  const auto options = std::make_shared<NettestConsoleOptions>();
  CLI::App* app = nettest.add_subcommand("console", "control agents, and add up their counts");
  app->add_option("--clients", options->parties.clients, "addresses of agents, with commas between [...:20480:39:13]")
      ->delimiter(',')
      ->required()
      ->type_name("ADDRESSES");
  app->add_option("--servers", options->parties.servers, "the same; each client talks to each server")
      ->delimiter(',')
      ->required()
      ->type_name("ADDRESSES");
  app->add_option("--type", options->type,
                  "ping: messages that the server returns; bulk: buffers that the server reads and writes")
      ->check(CLI::IsMember({"ping", "bulk"}))
      ->capture_default_str();
  add_bytes(*app, "--size", options->plan.size, kNettestSizeMax, "of a message, or of a bulk buffer");
  add_count(*app, "--concurrency", options->plan.concurrency, 1U, kNettestConcurrencyMax,
            "round trips in flight between a client and each server");
  add_count(*app, "--server-concurrency", options->plan.server_concurrency, 1U, kNettestConcurrencyMax,
            "reply buffers of a server");
  add_count<std::uint64_t>(*app, "--count", options->plan.count, 0, std::numeric_limits<std::int64_t>::max(),
                           "round trips of a client with each server; 0: no limit");
  add_seconds(*app, "--time", options->time, 0, "maximum seconds [10, or no limit with --count]");
  add_seconds(*app, "--timeout", options->plan.timeout, 0.001, "of one round trip, 60 at most");
  app->add_flag("--verify", options->plan.is_verified, "check every byte at both ends");
  app->add_option("--address", options->address, "own address, or its first parts [towards the first server]")
      ->type_name("ADDRESS");
  app->add_flag("--show-agents", options->shows_agents, "only print the commands that start the agents");
  app->add_flag("--json", options->is_json, "print one line of JSON at the end instead of tables");
  app->add_flag("-q,--quiet", options->is_quiet, "no line every second");
  add_engine_settings(*app, options->engine);
  app->callback([options, &exit_code] { exit_code = run_console(*options); });
}

}  // namespace

void add_nettest(CLI::App& app, int& exit_code) {
  CLI::App* nettest = app.add_subcommand(
      "nettest", "measure messages and bulk transfers between many hosts at once: agents, and a console for them");
  want_subcommand(*nettest);
  add_agent(*nettest, exit_code);
  add_console(*nettest, exit_code);
}

}  // namespace fairlead::tools
