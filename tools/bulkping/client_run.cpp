#include <fairlead/net/address.hpp>
#include <fairlead/options.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "base/settings.hpp"
#include "tools/base/address.hpp"
#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/base/interrupt.hpp"
#include "tools/base/live_line.hpp"
#include "tools/bulkping/report.hpp"
#include "tools/bulkping/run.hpp"
#include "tools/bulkping/thread.hpp"

namespace fairlead::tools {
namespace {

using Threads = std::vector<std::unique_ptr<BulkpingThread>>;

constexpr Duration kLookPause = std::chrono::milliseconds{50};

std::uint64_t random_word() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

/// Completes the own and the server's address.
Result<> complete_addresses(BulkpingClientOptions& options) {
  auto server = look_up_address(options.server, {});
  if (!server) return std::unexpected(std::move(server.error()));
  if (server->find('*') != server->npos) {
    return std::unexpected(
        Error{Status::invalid, 0,
              fmt::format("server {}: `*` is not allowed here: give the server's pid and tmid", *server)});
  }
  options.server = std::move(*server);
  if (options.address.empty()) {
    auto nid = nid_towards(options.server);
    if (!nid) return std::unexpected(std::move(nid.error()));
    options.address = std::move(*nid);
  }
  auto own = look_up_address(
      options.address,
      {.pid = "*", .portal = std::to_string(options.portal), .tmid = options.tmid.empty() ? "*" : options.tmid});
  if (!own) return std::unexpected(std::move(own.error()));
  options.address = std::move(*own);
  return {};
}

/// A buffer in transit to a silent peer returns when the engine gives up the peer. Unless the user chose that time,
/// limit it to the timeouts of the command line.
void give_up_in_time(BulkpingClientOptions& options) {
  constexpr std::string_view kName = "give_up_after";
  const auto table = option_table();
  const auto row = std::ranges::find(table, kName, &OptionRow::name);
  const bool is_chosen = row == table.end() || base::Settings::read_if_good().find(row->environment).has_value();
  const auto wanted = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(options.message_timeout).count());
  if (is_chosen || wanted >= row->value_default) return;
  options.engine.emplace(options.engine.begin(), kName,
                         // Before the user's --set, which therefore wins.
                         std::to_string(std::max(wanted, row->value_min)));
}

/// Returns the address of another transfer machine on the first thread's engine.
std::string address_of_next(std::string_view first, std::string_view asked) {
  const std::size_t tmid = first.rfind(':');
  return fmt::format("{}{}", first.substr(0, tmid), asked.substr(asked.rfind(':')));
}

/// Returns the engine's part of a full address: nid and pid.
std::string_view engine_part(std::string_view address) {
  const std::size_t tmid = address.rfind(':');
  return address.substr(0, address.rfind(':', tmid - 1));
}

/// Returns whether the machine's engine is the host engine, which serves the server as well.
bool is_served_by_host(BulkpingThread& thread) {
  const auto counters = thread.counters();
  return std::ranges::any_of(counters, [](const net::Counter& counter) { return counter.name.starts_with("host."); });
}

/// Fails if the client's own engine got the server's address. Without a server, its port is free, and the client would
/// talk to itself.
Result<> check_somebody_else(BulkpingThread& thread, std::string_view server) {
  if (is_served_by_host(thread)) return {};
  const std::string_view own = thread.address();
  const auto is_same_host = net::compare_nids(own, server);
  const auto pid = [](std::string_view engine) { return engine.substr(engine.rfind(':')); };
  if (!is_same_host || *is_same_host != 0 || pid(engine_part(own)) != pid(engine_part(server))) return {};
  return std::unexpected(Error{Status::refused, 0,
                               fmt::format("nobody listens at {} (this client just took that address itself): start "
                                           "`fairlead bulkping server` first, or check --server",
                                           server)});
}

Result<> start_threads(Threads& threads, net::Domain& domain, const BulkpingClientOptions& options,
                       const std::atomic<bool>& should_stop) {
  const std::uint64_t client = random_word();
  std::string address = options.address;
  for (std::uint32_t i = 0; i < options.threads; ++i) {
    threads.push_back(std::make_unique<BulkpingThread>(domain, options, client, i, should_stop));
    if (auto started = threads.back()->start(address); !started) return started;
    if (i == 0) address = address_of_next(threads.front()->address(), options.address);
  }
  return check_somebody_else(*threads.front(), options.server);
}

std::string live_text(const Threads& threads, const BulkpingClientOptions& options, Duration duration) {
  std::uint64_t loops = 0, bytes = 0;
  for (const auto& thread : threads) {
    loops += thread->loops_done();
    bytes += thread->bytes_moved();
  }
  return fmt::format("{} of {} loops, {:.1f} MB moved, {:.3f} GB/s", loops,
                     std::uint64_t{options.loops} * options.threads, static_cast<double>(bytes) / 1e6,
                     static_cast<double>(bytes) / static_cast<double>(duration.count()));
}

/// Runs the threads to their end. Returns the first error, if any.
std::optional<Error> run_threads(Threads& threads, const BulkpingClientOptions& options,
                                 std::atomic<bool>& should_stop) {
  std::mutex mutex;
  std::optional<Error> first_error;
  std::atomic<std::uint32_t> running = options.threads;
  const Instant start = Instant::clock::now();
  LiveLine live(options.is_live);
  std::vector<std::jthread> workers;
  for (const auto& thread : threads) {
    workers.emplace_back([&, worker = thread.get()] {
      if (auto outcome = worker->run(); !outcome) {
        should_stop = true;
        const std::lock_guard lock(mutex);
        if (!first_error) first_error = std::move(outcome.error());
      }
      --running;
    });
  }
  while (options.is_live && running > 0) {
    std::this_thread::sleep_for(kLookPause);
    const Instant now = Instant::clock::now();
    if (live.is_due(now)) live.show(live_text(threads, options, now - start), now);
  }
  workers.clear();
  return first_error;
}

}  // namespace

int run_bulkping_client(const BulkpingClientOptions& asked) {
  catch_interrupts();
  BulkpingClientOptions options = asked;
  if (auto completed = complete_addresses(options); !completed) return report_error(completed.error());
  give_up_in_time(options);
  auto domain = net::Domain::open({.engine = options.engine});
  if (!domain) return report_error(domain.error());

  std::atomic<bool> should_stop = false;
  Threads threads;
  if (auto started = start_threads(threads, *domain, options, should_stop); !started)
    return report_error(started.error());
  if (options.is_verbose) fmt::print(stderr, "client at {}, {} threads\n", threads.front()->address(), options.threads);

  const Instant start = Instant::clock::now();
  const auto error = run_threads(threads, options, should_stop);
  RunFacts run{.address = threads.front()->address(),
               .duration = Instant::clock::now() - start,
               .queues = {},
               .messages_dropped = 0,
               .counters = threads.front()->counters(),
               .is_interrupted = is_interrupted(),
               .error = error ? error->message : ""};
  ClientFigures figures;
  for (const auto& thread : threads) {
    run.messages_dropped += thread->messages_dropped();
    thread->stop();
    run.queues += thread->statistics();
    figures += thread->figures();
  }
  if (options.is_json) {
    fmt::print("{}", client_json(run, figures, options));
  } else if (!options.is_quiet) {
    fmt::print("{}", client_report(run, figures, options));
  }
  std::fflush(stdout);
  if (error) fmt::print(stderr, "fairlead: {}\n", error->message);
  if (error) return kExitFailed;
  return run.is_interrupted ? kExitInterrupted : kExitOk;
}

}  // namespace fairlead::tools
