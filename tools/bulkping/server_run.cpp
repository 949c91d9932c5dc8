#include <fmt/format.h>

#include <cstdio>

#include "tools/base/address.hpp"
#include "tools/base/byte_size.hpp"
#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/base/interrupt.hpp"
#include "tools/base/live_line.hpp"
#include "tools/bulkping/report.hpp"
#include "tools/bulkping/run.hpp"
#include "tools/bulkping/server.hpp"

namespace fairlead::tools {
namespace {

constexpr Duration kServePiece = std::chrono::milliseconds{100};

std::string live_text(const ServerFigures& figures) {
  return fmt::format("{} messages, {} bulk in ({:.1f} MB), {} bulk out ({:.1f} MB), {} failed", figures.pings,
                     figures.fetches, static_cast<double>(figures.bytes_fetched) / 1e6, figures.deliveries,
                     static_cast<double>(figures.bytes_delivered) / 1e6, figures.failures);
}

}  // namespace

int run_bulkping_server(const BulkpingServerOptions& options) {
  catch_interrupts();
  const auto address =
      look_up_address(options.address.empty() ? "127.0.0.1" : options.address,
                      {.portal = std::to_string(options.portal), .tmid = options.tmid.empty() ? "12" : options.tmid});
  if (!address) return report_error(address.error());
  auto domain = net::Domain::open({.engine = options.engine});
  if (!domain) return report_error(domain.error());

  BulkpingServer server(*domain, options);
  if (auto started = server.start(*address); !started) return report_error(started.error());
  if (!options.is_quiet && !options.is_json) fmt::print("serving at {}, Ctrl-C ends it\n", server.address());
  if (options.is_json && !options.is_quiet) fmt::print(stderr, "serving at {}\n", server.address());
  std::fflush(stdout);

  const Instant start = Instant::clock::now();
  LiveLine live(options.is_live);
  while (!is_interrupted() && !server.has_lost_engine()) {
    server.serve(kServePiece);
    const Instant now = Instant::clock::now();
    if (live.is_due(now)) live.show(live_text(server.figures()), now);
  }
  live.clear();
  if (server.has_lost_engine()) {
    server.stop();
    return report_error(lost_host_engine());
  }
  const Duration duration = Instant::clock::now() - start;
  const std::uint64_t dropped = server.machine().messages_dropped();
  auto counters = server.machine().engine_counters();
  server.stop();
  const RunFacts run{.address = server.address(),
                     .duration = duration,
                     .queues = server.statistics(),
                     .messages_dropped = dropped,
                     .counters = std::move(counters),
                     .is_interrupted = true,
                     .error = {}};
  if (options.is_json) {
    fmt::print("{}", server_json(run, server.figures()));
  } else if (!options.is_quiet) {
    fmt::print("{}", server_report(run, server.figures(), options.is_verbose));
  }
  return kExitOk;
}

}  // namespace fairlead::tools
