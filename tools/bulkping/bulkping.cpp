// Command-line options of `fairlead bulkping server|client`.
#include <fmt/format.h>

#include <memory>

#include "tools/base/command_line.hpp"
#include "tools/base/live_line.hpp"
#include "tools/bulkping/run.hpp"

namespace fairlead::tools {
namespace {

void add_common(CLI::App& app, BulkpingCommon& options) {
  add_count(app, "--portal", options.portal, 1U, 63U, "portal, where --address leaves it out");
  app.add_option("--tmid", options.tmid, "transfer machine id, or * for a free one, if --address omits it")
      ->type_name("1..4095|*");
  add_count(app, "--receive-buffers", options.receive_buffers, 1U, 4096U, "buffers posted for messages");
  add_count(app, "--messages-per-buffer", options.messages_max, 1U, 4096U,
            "maximum number of messages in one such buffer");
  add_bytes(app, "--receive-size-min", options.receive_size_min, kMessageSizeMax,
            "room below which such a buffer counts as full [message size]");
  add_seconds(app, "--message-timeout", options.message_timeout, 0.001, "time for a message and its reply");
  add_seconds(app, "--bulk-timeout", options.bulk_timeout, 0.001, "time for a bulk transfer");
  app.add_flag("--async", options.is_async, "the transfer machine's own thread delivers events, not the waiting one");
  add_engine_settings(app, options.engine);
  app.add_flag("--json", options.is_json, "print one JSON document instead of tables");
  app.add_flag("--live", options.is_live, "show the live line even if standard error is no terminal");
  auto* verbose =
      app.add_flag("-v,--verbose", options.is_verbose, "every failure, and the engine's counters at the end");
  app.add_flag("-q,--quiet", options.is_quiet, "print only errors")->excludes(verbose);
}

/// Checks combinations of options, and sets defaults that depend on the terminal.
void settle(BulkpingCommon& options) {
  if (options.message_size < kMessageSizeMin) {
    throw CLI::ValidationError("--message-size", fmt::format("{} has no room for a request: want at least {}",
                                                             options.message_size, kMessageSizeMin));
  }
  if (options.receive_size_min > options.receive_buffer_size()) {
    throw CLI::ValidationError(
        "--receive-size-min", fmt::format("{} is more than a receive buffer of {} bytes ({} messages of {}): lower it",
                                          options.receive_size_min, options.receive_buffer_size(), options.messages_max,
                                          options.message_size));
  }
  options.is_live = options.is_live || (LiveLine::is_terminal() && !options.is_quiet && !options.is_json);
}

void add_server(CLI::App& bulkping, int& exit_code) {
  const auto options = std::make_shared<BulkpingServerOptions>();
  CLI::App* app = bulkping.add_subcommand("server", "serve any number of clients until Ctrl-C");
  app->add_option("--address", options->address, "own address, or its first parts [127.0.0.1@udp:20480:39:12]")
      ->type_name("ADDRESS");
  add_count(*app, "--buffers", options->buffers, 4U, 4096U, "bulk buffers at most, and as many for replies");
  add_bytes(*app, "--bulk-size", options->bulk_size_max, kBulkSizeMax, "largest bulk that a client may ask for");
  add_bytes(*app, "--memory", options->memory, std::uint64_t{1} << 40, "memory of all bulk buffers together");
  add_bytes(*app, "--message-size", options->message_size, kMessageSizeMax, "largest message taken");
  add_seconds(*app, "--delay", options->delay, 0, "pause before each active transfer");
  add_common(*app, *options);
  app->callback([options, &exit_code] {
    settle(*options);
    exit_code = run_bulkping_server(*options);
  });
}

void add_client(CLI::App& bulkping, int& exit_code) {
  const auto options = std::make_shared<BulkpingClientOptions>();
  CLI::App* app = bulkping.add_subcommand(
      "client", "exchange messages and bulk data with a server, in both directions, all checked");
  options->server = "127.0.0.1";
  app->add_option("--server", options->server, "the server's address, or its first parts [127.0.0.1@udp:20480:39:12]")
      ->type_name("ADDRESS");
  app->add_option("--address", options->address,
                  "own address, or its first parts [the nid that leads to the server, rest free]")
      ->type_name("ADDRESS");
  add_count(*app, "--loops", options->loops, 1U, ~0U, "of each thread: a message and its reply, bulk there, bulk back");
  add_bytes(*app, "--bulk-size", options->bulk_size, kBulkSizeMax, "1 to 1G");
  add_count(*app, "--threads", options->threads, 1U, kThreadsMax, "each with a transfer machine of its own");
  add_bytes(*app, "--message-size", options->message_size, kMessageSizeMax, "of each message sent");
  add_common(*app, *options);
  app->callback([options, &exit_code] {
    settle(*options);
    exit_code = run_bulkping_client(*options);
  });
}

}  // namespace

void add_bulkping(CLI::App& app, int& exit_code) {
  CLI::App* bulkping =
      app.add_subcommand("bulkping", "move messages and bulk data between processes, and verify every byte");
  want_subcommand(*bulkping);
  add_server(*bulkping, exit_code);
  add_client(*bulkping, exit_code);
}

}  // namespace fairlead::tools
