#include "tools/bulkping/report.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/base/byte_size.hpp"
#include "tools/base/text_table.hpp"

namespace fairlead::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, net::kQueueKinds> kShortNames{"mRECV", "mSEND", "pRECV",
                                                                     "pSEND", "aRECV", "aSEND"};

struct Percentile {
  double percent;
  std::string_view heading;
  std::string_view key;
};
constexpr std::array<Percentile, 4> kPercentiles{
    {{50, "p50 us", "p50_us"}, {90, "p90 us", "p90_us"}, {99, "p99 us", "p99_us"}, {99.9, "p99.9 us", "p999_us"}}};

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}
double microseconds(Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

double gigabytes_per_second(std::uint64_t bytes, Duration time) {
  return time > Duration::zero() ? static_cast<double>(bytes) / static_cast<double>(time.count()) : 0;
}

std::string clock_text(Duration time) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  return fmt::format("{:02}:{:02}:{:02}.{:03}", milliseconds / 3'600'000, milliseconds / 60'000 % 60,
                     milliseconds / 1000 % 60, milliseconds % 1000);
}

std::string queue_table(const net::Statistics& statistics) {
  TextTable table({"queue", "adds", "deletes", "successes", "failures", "time in queue", "bytes", "largest"});
  for (std::size_t i = 0; i < net::kQueueKinds; ++i) {
    const net::QueueStatistics& queue = statistics.queues[i];
    table.add({std::string(kShortNames[i]), fmt::format("{}", queue.adds), fmt::format("{}", queue.deletes),
               fmt::format("{}", queue.successes), fmt::format("{}", queue.failures), clock_text(queue.time_in_queue),
               fmt::format("{}", queue.bytes_total), fmt::format("{}", queue.bytes_max)});
  }
  return table.to_string();
}

std::string counter_lines(const std::vector<net::Counter>& counters) {
  std::string lines;
  for (const auto& [name, value] : counters) {
    if (value != 0) lines += fmt::format("  {} {}\n", name, value);
  }
  return lines;
}

std::vector<std::string> latency_row(std::string_view name, const observe::Histogram& times, std::uint64_t bytes_each) {
  std::vector<std::string> row{std::string(name), fmt::format("{}", times.count())};
  for (const Percentile& each : kPercentiles)
    row.push_back(fmt::format("{:.1f}", microseconds(times.percentile(each.percent))));
  row.push_back(fmt::format("{:.1f}", microseconds(times.longest())));
  row.push_back(bytes_each == 0 ? "" : fmt::format("{:.3f}", gigabytes_per_second(bytes_each, times.percentile(50))));
  return row;
}

Json queue_json(const net::Statistics& statistics) {
  Json queues = Json::object();
  for (std::size_t i = 0; i < net::kQueueKinds; ++i) {
    const net::QueueStatistics& queue = statistics.queues[i];
    queues[std::string(kShortNames[i])] = {{"adds", queue.adds},
                                           {"deletes", queue.deletes},
                                           {"successes", queue.successes},
                                           {"failures", queue.failures},
                                           {"time_in_queue_s", seconds(queue.time_in_queue)},
                                           {"bytes", queue.bytes_total},
                                           {"largest", queue.bytes_max}};
  }
  return queues;
}

Json latency_json(const observe::Histogram& times) {
  Json latency = {{"count", times.count()}};
  for (const Percentile& each : kPercentiles)
    latency[std::string(each.key)] = microseconds(times.percentile(each.percent));
  latency["longest_us"] = microseconds(times.longest());
  return latency;
}

Json run_json(std::string_view role, const RunFacts& run) {
  Json counters = Json::object();
  for (const auto& [name, value] : run.counters) counters[name] = value;
  return {{"role", role},
          {"address", run.address},
          {"duration_s", seconds(run.duration)},
          {"interrupted", run.is_interrupted},
          {"error", run.error},
          {"messages_dropped", run.messages_dropped},
          {"queues", queue_json(run.queues)},
          {"counters", counters}};
}

}  // namespace

std::string server_report(const RunFacts& run, const ServerFigures& figures, bool is_verbose) {
  std::string text =
      fmt::format("server {}, {:.3f} s\n{}", run.address, seconds(run.duration), queue_table(run.queues));
  text +=
      fmt::format("served {} messages, {} bulk to the server ({} bytes, verified), {} bulk to clients ({} bytes)\n",
                  figures.pings, figures.fetches, figures.bytes_fetched, figures.deliveries, figures.bytes_delivered);
  text +=
      fmt::format("corrupt {}, failed {}, refused {}, malformed {}, retries {}, messages dropped {}\n", figures.corrupt,
                  figures.failures, figures.refusals, figures.malformed, figures.retries, run.messages_dropped);
  if (is_verbose) text += counter_lines(run.counters);
  return text;
}

std::string client_report(const RunFacts& run, const ClientFigures& figures, const BulkpingClientOptions& options) {
  std::string text = fmt::format("client {} to {}, {:.3f} s{}\n{}", run.address, options.server, seconds(run.duration),
                                 run.is_interrupted ? ", interrupted" : "", queue_table(run.queues));
  TextTable table({"time of", "count", "p50 us", "p90 us", "p99 us", "p99.9 us", "longest us", "GB/s at p50"});
  table.add(latency_row("message and reply", figures.message_round_trip, 0));
  table.add(latency_row("bulk to server", figures.bulk_to_server, options.bulk_size));
  table.add(latency_row("bulk to client", figures.bulk_to_client, options.bulk_size));
  text += table.to_string();
  const std::uint64_t bytes = figures.bytes_to_server + figures.bytes_to_client;
  text += fmt::format(
      "{} loops by {} threads, bulk of {}: {} bytes to the server, {} bytes to the client, all verified; {:.3f} GB/s "
      "with checks, {} retries\n",
      figures.loops_done, options.threads, byte_size_text(options.bulk_size), figures.bytes_to_server,
      figures.bytes_to_client, gigabytes_per_second(bytes, run.duration), figures.retries);
  if (options.is_verbose) text += counter_lines(run.counters);
  return text;
}

std::string server_json(const RunFacts& run, const ServerFigures& figures) {
  Json json = run_json("server", run);
  json["served"] = {{"messages", figures.pings},
                    {"bulk_to_server", figures.fetches},
                    {"bytes_to_server", figures.bytes_fetched},
                    {"bulk_to_client", figures.deliveries},
                    {"bytes_to_client", figures.bytes_delivered},
                    {"corrupt", figures.corrupt},
                    {"failed", figures.failures},
                    {"refused", figures.refusals},
                    {"malformed", figures.malformed},
                    {"retries", figures.retries}};
  return json.dump(2) + "\n";
}

std::string client_json(const RunFacts& run, const ClientFigures& figures, const BulkpingClientOptions& options) {
  Json json = run_json("client", run);
  json["server"] = options.server;
  json["threads"] = options.threads;
  json["bulk_size"] = options.bulk_size;
  json["loops"] = figures.loops_done;
  json["bytes_to_server"] = figures.bytes_to_server;
  json["bytes_to_client"] = figures.bytes_to_client;
  json["gb_per_s"] = gigabytes_per_second(figures.bytes_to_server + figures.bytes_to_client, run.duration);
  json["retries"] = figures.retries;
  json["message_round_trip"] = latency_json(figures.message_round_trip);
  json["bulk_to_server"] = latency_json(figures.bulk_to_server);
  json["bulk_to_client"] = latency_json(figures.bulk_to_client);
  return json.dump(2) + "\n";
}

}  // namespace fairlead::tools
