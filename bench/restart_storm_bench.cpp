// What the restart of a host engine costs its peers: see bench/restart_storm.hpp.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <string_view>

#include "bench/restart_storm.hpp"

namespace {

using namespace fairlead;

double in_ms(base::Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

void show(std::string_view what, const bench::StormOptions& options, const bench::StormResult& result) {
  fmt::print("{:>7} {:>8.0f} {:<9} {:>9.1f} {:>9.1f} {:>10.1f} {:>10} {:>9} {:>9}\n", options.peers,
             in_ms(options.spread), what, in_ms(result.until_half), in_ms(result.until_all),
             static_cast<double>(result.arrived) / options.peers, result.overflowed, result.refused_messages,
             result.given_up);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint32_t most = 10'000;
  CLI::App app("a host engine restarts, and all its peers send to it again; virtual time");
  app.add_option("--peers", most, "most peers")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  fmt::print("{:>7} {:>8} {:<9} {:>9} {:>9} {:>10} {:>10} {:>9} {:>9}\n", "peers", "spread", "", "half", "all",
             "datagrams", "overflowed", "restarted", "given up");
  fmt::print("{:>7} {:>8} {:<9} {:>9} {:>9} {:>10} {:>10} {:>9} {:>9}\n", "", "ms", "", "ms", "ms", "per peer", "",
             "messages", "");
  for (std::uint32_t peers = 100; peers <= most; peers *= 10) {
    for (const int spread : {0, 1000}) {
      const bench::StormOptions options{.peers = peers, .spread = std::chrono::milliseconds(spread)};
      bench::RestartStorm storm(options);
      show("connect", options, storm.send_all());
      storm.restart();
      show("restart", options, storm.send_all());
    }
  }
}
