// `fairlead top`: shows the engines of this host from outside. `fairlead flight`: shows an engine's recent events.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/quantity.hpp"
#include "base/shown.hpp"
#include "observe/flight_recorder.hpp"
#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/base/interrupt.hpp"
#include "tools/base/now.hpp"
#include "tools/top/engines.hpp"
#include "tools/top/export.hpp"
#include "tools/top/metrics_server.hpp"
#include "tools/top/peer.hpp"
#include "tools/top/table.hpp"

namespace fairlead::tools {
namespace {

struct TopOptions {
  pid_t pid = 0;
  std::string peer;
  TopView view;
  Duration interval = std::chrono::seconds(1);
  bool is_once = false, is_json = false, is_openmetrics = false;
  std::uint16_t port = 0;  // port of the metrics server; 0: none

  bool has_details() const { return pid != 0 || !peer.empty(); }
  std::optional<pid_t> only() const { return pid == 0 ? std::nullopt : std::optional(pid); }
};

/// Looks at the engines that the options select.
Result<SeenEngines> look_at(const TopOptions& options) {
  auto seen = look_at_engines(options.only());
  if (!seen || options.peer.empty()) return seen;
  seen = engines_with_peer(std::move(*seen), options.peer);
  if (!seen->engines.empty()) return seen;
  return std::unexpected(
      Error{Status::not_available, 0,
            fmt::format("no engine of yours here knows a peer {}: `fairlead top --pid PID` lists those of a process",
                        base::shown(options.peer, 64))});
}

std::string details(const TopOptions& options, const SeenEngines& seen) {
  std::string text;
  for (const SeenEngine& engine : seen.engines)
    text += (options.peer.empty() ? top_detail(engine, now()) : top_peers(engine, now())) + "\n";
  for (const UnreadableEngine& one : seen.unreadable) text += fmt::format("{}: {}\n", one.pid, one.why.message);
  return text;
}

int print_once(const TopOptions& options) {
  const auto seen = look_at(options);
  if (!seen) return report_error(seen.error());
  std::string text;
  if (options.is_json)
    text = top_json(*seen);
  else if (options.is_openmetrics)
    text = top_openmetrics(*seen);
  else if (options.has_details())
    text = details(options, *seen);
  else
    text = top_table(*seen, nullptr, 0, options.view);
  fmt::print("{}", text);
  return kExitOk;
}

void rest_until(Instant end) {
  constexpr Duration kMost = std::chrono::milliseconds(50);
  for (Duration left = end - now(); left > Duration::zero() && !is_interrupted(); left = end - now())
    std::this_thread::sleep_for(std::min(left, kMost));
}

/// Runs until Ctrl-C, its normal end.
int watch(const TopOptions& options) {
  catch_interrupts();
  const char* const clear = ::isatty(STDOUT_FILENO) != 0 ? "\033[H\033[J" : "";
  std::optional<SeenEngines> before;
  for (Instant seen_at{}; !is_interrupted(); rest_until(seen_at + options.interval)) {
    auto seen = look_at(options);
    if (!seen) return report_error(seen.error());
    const double seconds = std::chrono::duration<double>(now() - std::exchange(seen_at, now())).count();
    fmt::print("{}{}{}", clear, top_table(*seen, before ? &*before : nullptr, seconds, options.view),
               options.has_details() ? "\n" + details(options, *seen) : "");
    std::fflush(stdout);
    before = std::move(*seen);
  }
  return kExitOk;
}

int serve_metrics(const TopOptions& options) {
  catch_interrupts();
  auto server = MetricsServer::listen(options.port, [only = options.only()]() -> Result<std::string> {
    const auto seen = look_at_engines(only);
    return seen ? Result<std::string>(top_openmetrics(*seen)) : std::unexpected(seen.error());
  });
  if (!server) return report_error(server.error());
  fmt::print(stderr, "fairlead: serving http://127.0.0.1:{}/metrics\n", server->port());
  while (!is_interrupted()) server->serve(std::chrono::milliseconds(100));
  return kExitOk;
}

int run_top(const TopOptions& options) {
  const auto headings = top_headings();
  if (std::ranges::find(headings, options.view.sort) == headings.end()) {
    return report_error(
        {Status::invalid, 0,
         fmt::format("no column '{}': one of {}", base::shown(options.view.sort), fmt::join(headings, ", "))});
  }
  if (options.port != 0) return serve_metrics(options);
  return options.is_once || options.is_json || options.is_openmetrics ? print_once(options) : watch(options);
}

std::string flights_of(const SeenEngine& engine) {
  const base::Instant then{Duration(engine.view.header.flights_at)};
  std::string text;
  for (const observe::StatsFlight& flight : engine.view.flights) {
    const auto events = std::span(engine.view.events).subspan(flight.first, flight.count);
    text +=
        observe::describe_flight(events, flight.recorded, base::shown(observe::text_of(flight.peer), 64), then) + "\n";
  }
  if (text.empty()) text = "nothing was recorded: it has had no peer over UDP\n";
  return fmt::format("fairlead at {}{}:\n{}", base::shown(observe::text_of(engine.view.header.address), 64),
                     engine.is_fresh ? "" : " (does not answer: is it stopped? These are its last figures)", text);
}

int run_flight(pid_t pid) {
  const auto seen = look_at_engines(pid, true);
  if (!seen) return report_error(seen.error());
  for (const SeenEngine& engine : seen->engines) fmt::print("{}", flights_of(engine));
  for (const UnreadableEngine& one : seen->unreadable) report_error(one.why);
  return seen->unreadable.empty() ? kExitOk : kExitFailed;
}

}  // namespace

void add_top(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<TopOptions>();
  CLI::App* top = app.add_subcommand(
      "top", "show the engines of your processes on this host, live: peers, messages, bytes, resends (docs/top.md)");
  top->add_option("--pid", options->pid, "one process: its peers, ports, queue pairs, counters and last report")
      ->check(CLI::PositiveNumber.description(""))
      ->type_name("PID");
  CLI::Option* peer =
      top->add_option("--peer", options->peer, "one peer: all that each engine knows of it, and its queue pairs")
          ->check([](const std::string& text) {
            return text.empty() ? "it is empty: name an address, as 10.0.0.5 or 10.0.0.5:20480" : std::string();
          })
          ->type_name("IP[:PORT]");
  top->add_option("--sort", options->view.sort, "the column that orders the rows")
      ->type_name("COLUMN")
      ->capture_default_str();
  top->add_option("--filter", options->view.filter, "show only rows with this text")->type_name("TEXT");
  add_seconds(*top, "--interval", options->interval, 0.1, "between two looks");
  top->add_flag("--once", options->is_once, "print one table, with figures since the engine's start");
  auto* const json = top->add_flag("--json", options->is_json, "print all figures once, as JSON for programs");
  auto* const metrics =
      top->add_flag("--openmetrics", options->is_openmetrics, "one look, all counters, for Prometheus and its like");
  json->excludes(metrics);
  peer->excludes(metrics);
  add_count(*top, "--listen", options->port, std::uint16_t{1}, std::uint16_t{65535},
            "serve --openmetrics at this port of 127.0.0.1, as /metrics, until Ctrl-C")
      ->default_str("")
      ->needs(metrics);
  top->callback([options, &exit_code] { exit_code = run_top(*options); });
}

void add_flight(CLI::App& app, int& exit_code) {
  const auto pid = std::make_shared<pid_t>(0);
  CLI::App* flight =
      app.add_subcommand("flight", "print the flight recorder of a running process: its last events with each peer");
  flight->add_option("PID", *pid, "the process")->required()->check([](const std::string& text) {
    const auto number = base::parse_quantity(text, "processes");
    return number && *number >= 1 && *number <= std::numeric_limits<pid_t>::max()
               ? std::string()
               : fmt::format("'{}' is no process: `fairlead ps` and `fairlead top` list them", base::shown(text));
  });
  flight->callback([pid, &exit_code] { exit_code = run_flight(*pid); });
}

}  // namespace fairlead::tools
