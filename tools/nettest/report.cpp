#include "tools/nettest/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/base/byte_size.hpp"
#include "tools/base/text_table.hpp"

namespace fairlead::tools {
namespace {

using Json = nlohmann::ordered_json;

double positive_seconds(Duration time) {
  return std::max(std::chrono::duration<double>(time).count(), 1e-9);
}
double per_second(std::uint64_t count, Duration time) {
  return static_cast<double>(count) / positive_seconds(time);
}
double megabytes(std::uint64_t bytes, Duration time) {
  return per_second(bytes, time) / 1e6;
}

void add_row(TextTable& table, std::string_view role, std::string_view what, const NettestTally& tally, Duration time) {
  if (tally.done == 0 && tally.failed == 0) return;
  table.add({std::string(role), std::string(what), fmt::format("{}", tally.done), fmt::format("{}", tally.failed),
             fmt::format("{}", tally.bad), fmt::format("{:.0f}", per_second(tally.done, time))});
}

void add_role(TextTable& table, std::string_view role, const NettestFigures& figures, Duration time) {
  add_row(table, role, "messages sent", figures.sent, time);
  add_row(table, role, "messages received", figures.received, time);
  add_row(table, role, "bulk sent", figures.bulk_sent, time);
  add_row(table, role, "bulk received", figures.bulk_received, time);
  add_row(table, role, "round trips", figures.round_trips, time);
}

std::uint64_t faults_of(const NettestFigures& figures) {
  std::uint64_t faults = 0;
  for (const NettestTally& tally :
       {figures.sent, figures.received, figures.bulk_sent, figures.bulk_received, figures.round_trips})
    faults += tally.failed + tally.bad;
  return faults;
}

bool do_agree(const NettestState& state) {
  const NettestFigures &clients = state.clients, &servers = state.servers;
  return clients.sent.done == servers.received.done && clients.received.done == servers.sent.done &&
         clients.bulk_sent.done == servers.bulk_received.done && clients.bulk_received.done == servers.bulk_sent.done &&
         clients.round_trips.done == servers.round_trips.done;
}

Json tally_json(const NettestTally& tally) {
  return {{"done", tally.done}, {"failed", tally.failed}, {"bad", tally.bad}};
}

Json figures_json(const NettestFigures& figures) {
  return {{"sent", tally_json(figures.sent)},
          {"received", tally_json(figures.received)},
          {"bulk_sent", tally_json(figures.bulk_sent)},
          {"bulk_received", tally_json(figures.bulk_received)},
          {"round_trips", tally_json(figures.round_trips)},
          {"bytes_sent", figures.bytes_sent},
          {"bytes_received", figures.bytes_received}};
}

}  // namespace

bool has_faults(const NettestState& state) {
  return faults_of(state.clients) + faults_of(state.servers) > 0 || !do_agree(state);
}

std::string nettest_line(const NettestState& state, const NettestState& before) {
  const NettestFigures &now = state.clients, &then = before.clients;
  const Duration time = state.time - before.time;
  return fmt::format("{:.0f} s: {:.0f} round trips/s, {:.1f} MB/s out, {:.1f} MB/s in; {} in all, {} failed; {:.1f} us",
                     positive_seconds(state.time), per_second(now.round_trips.done - then.round_trips.done, time),
                     megabytes(now.bytes_sent - then.bytes_sent, time),
                     megabytes(now.bytes_received - then.bytes_received, time), now.round_trips.done,
                     now.round_trips.failed, now.round_trip_time.mean_ns() / 1e3);
}

std::string nettest_report(const NettestPlan& plan, const NettestState& state) {
  TextTable table({"side", "what", "done", "failed", "bad", "per second"});
  table.align_left(1);
  add_role(table, "clients", state.clients, state.time);
  add_role(table, "servers", state.servers, state.time);
  const Moments& times = state.clients.round_trip_time;
  return fmt::format(
      "{} of {}, {} clients, {} servers, {} at a time with each, {:.3f} s{}\n{}"
      "out {:.1f} MB/s, in {:.1f} MB/s\n"
      "round trip us: {} counted, least {:.1f}, mean {:.1f}, greatest {:.1f}, deviation {:.1f}\n{}",
      plan.is_bulk ? "bulk" : "ping", byte_size_text(plan.size), plan.clients, plan.servers, plan.concurrency,
      positive_seconds(state.time), plan.is_verified ? ", verified" : "", table.to_string(),
      megabytes(state.clients.bytes_sent, state.time), megabytes(state.clients.bytes_received, state.time),
      times.count(), static_cast<double>(times.least().count()) / 1e3, times.mean_ns() / 1e3,
      static_cast<double>(times.greatest().count()) / 1e3, times.deviation_ns() / 1e3,
      do_agree(state) ? "" : "the totals of both sides differ: messages or events were lost\n");
}

std::string nettest_json(const NettestPlan& plan, const NettestState& state) {
  const Moments& times = state.clients.round_trip_time;
  const Json json = {{"type", plan.is_bulk ? "bulk" : "ping"},
                     {"size", plan.size},
                     {"clients", plan.clients},
                     {"servers", plan.servers},
                     {"concurrency", plan.concurrency},
                     {"verified", plan.is_verified},
                     {"time_s", positive_seconds(state.time)},
                     {"interrupted", state.is_interrupted},
                     {"agree", do_agree(state)},
                     {"round_trips_per_s", per_second(state.clients.round_trips.done, state.time)},
                     {"mb_per_s_out", megabytes(state.clients.bytes_sent, state.time)},
                     {"mb_per_s_in", megabytes(state.clients.bytes_received, state.time)},
                     {"round_trip_ns",
                      {{"count", times.count()},
                       {"least", times.least().count()},
                       {"mean", times.mean_ns()},
                       {"greatest", times.greatest().count()},
                       {"deviation", times.deviation_ns()}}},
                     {"at_clients", figures_json(state.clients)},
                     {"at_servers", figures_json(state.servers)}};
  return json.dump() + "\n";
}

}  // namespace fairlead::tools
