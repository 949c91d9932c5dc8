// Runs the floors from the command line. `fairlead perf` prints the same figures beside its own.

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "observe/canary.hpp"
#include "observe/floor.hpp"

namespace {

using namespace fairlead;

double micros(base::Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

Result<nlohmann::json> measure(const std::string& op, const observe::FloorOptions& options) {
  nlohmann::json row{{"op", op}, {"size", options.bytes}, {"datagram_size", options.datagram_size}};
  if (op == "pingpong") {
    const auto floor = observe::floor_udp_exchange(options);
    if (!floor) return std::unexpected(floor.error());
    row["p50_us"] = micros(floor->one_way.percentile(50));
    row["p99_us"] = micros(floor->one_way.percentile(99));
    row["p999_us"] = micros(floor->one_way.percentile(99.9));
  } else {
    const auto floor = op == "tcp" ? observe::floor_tcp_stream(options) : observe::floor_udp_stream(options);
    if (!floor) return std::unexpected(floor.error());
    row["gb_per_s"] = floor->gb_per_s;
    row["cpu_s_per_gb"] = floor->cpu_s_per_gb;
  }
  row["canary_ns"] = observe::line_transfer_time(options.cpu_near, options.cpu_far).count();
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"what plain UDP and TCP sockets give between two spinning processes on the loopback"};
  observe::FloorOptions options;
  std::string op = "pingpong";
  double seconds = 0.5;
  bool is_json = false;
  app.add_option("--op", op, "pingpong, stream or tcp")->check(CLI::IsMember({"pingpong", "stream", "tcp"}));
  app.add_option("--bytes", options.bytes, "bytes of a message");
  app.add_option("--datagram", options.datagram_size, "bytes of a datagram; longer messages are cut");
  app.add_option("--in-flight", options.in_flight_bytes, "bytes in flight of the UDP stream");
  app.add_option("--seconds", seconds, "how long to measure")->check(CLI::Range(0.01, 60.0));
  app.add_flag("--json", is_json, "one object");
  CLI11_PARSE(app, argc, argv);
  options.duration = std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(seconds));

  const auto row = measure(op, options);
  if (!row) {
    fmt::print(stderr, "floor_udp_bench: {}\n", row.error().message);
    return 2;
  }
  if (is_json) {
    fmt::print("{}\n", row->dump());
  } else {
    for (const auto& [key, value] : row->items()) fmt::print("{:14} {}\n", key, value.dump());
  }
  return 0;
}
