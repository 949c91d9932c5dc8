// `fairlead bulkping server|client`: the options of the command line.
#include <fmt/format.h>

#include <memory>

#include "tools/bulkping_run.hpp"
#include "tools/command_line.hpp"
#include "tools/live_line.hpp"

namespace fairlead::tools {
namespace {

void add_common(CLI::App& app, BulkpingCommon& options) {
  app.add_option("--portal", options.portal, "portal, where --address leaves it out")->check(CLI::Range(1, 63))->capture_default_str();
  app.add_option("--tmid", options.tmid, "transfer machine id, or * for a free one, where --address leaves it out")
      ->type_name("1..4095|*");
  app.add_option("--receive-buffers", options.receive_buffers, "buffers posted for messages")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--messages-per-buffer", options.messages_max, "messages that one of them takes at most")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--receive-size-min", options.receive_size_min, "room below which it counts as full [message size]")
      ->transform(byte_size(kMessageSizeMax));
  add_seconds(app, "--message-timeout", options.message_timeout, 0.001, "time for a message and its reply");
  add_seconds(app, "--bulk-timeout", options.bulk_timeout, 0.001, "time for a bulk transfer");
  app.add_flag("--async", options.is_async, "events come from the transfer machine's own thread, not from the one that waits");
  add_engine_settings(app, options.engine);
  app.add_flag("--json", options.is_json, "one JSON document instead of tables");
  app.add_flag("--live", options.is_live, "the live line also where standard error is no terminal");
  auto* verbose = app.add_flag("-v,--verbose", options.is_verbose, "every failure, and the engine's counters at the end");
  app.add_flag("-q,--quiet", options.is_quiet, "errors and the exit code alone")->excludes(verbose);
}

/// What only several options together can get wrong, and what follows from where we run.
void settle(BulkpingCommon& options) {
  if (options.message_size < kMessageSizeMin) {
    throw CLI::ValidationError("--message-size", fmt::format("{} has no room for a request: want at least {}", options.message_size,
                                                             kMessageSizeMin));
  }
  if (options.receive_size_min > options.receive_buffer_size()) {
    throw CLI::ValidationError("--receive-size-min",
                               fmt::format("{} is more than a receive buffer of {} bytes ({} messages of {}): lower it",
                                           options.receive_size_min, options.receive_buffer_size(), options.messages_max,
                                           options.message_size));
  }
  options.is_live = options.is_live || (LiveLine::is_terminal() && !options.is_quiet && !options.is_json);
}

void add_server(CLI::App& bulkping, int& exit_code) {
  const auto options = std::make_shared<BulkpingServerOptions>();
  CLI::App* app = bulkping.add_subcommand("server", "serve any number of clients until Ctrl-C");
  app->add_option("--address", options->address, "own address, or the beginning of it [127.0.0.1@udp:20480:39:12]")->type_name("ADDRESS");
  app->add_option("--buffers", options->buffers, "bulk buffers at most, and as many for replies")
      ->check(CLI::Range(4, 4096))
      ->capture_default_str();
  app->add_option("--bulk-size", options->bulk_size_max, "largest bulk that a client may ask for [1G]")
      ->transform(byte_size(kBulkSizeMax));
  app->add_option("--memory", options->memory, "of all bulk buffers together [2G]")->transform(byte_size(std::uint64_t{1} << 40));
  app->add_option("--message-size", options->message_size, "largest message taken [4K]")->transform(byte_size(kMessageSizeMax));
  add_seconds(*app, "--delay", options->delay, 0, "pause before each active transfer");
  add_common(*app, *options);
  app->callback([options, &exit_code] {
    settle(*options);
    exit_code = run_bulkping_server(*options);
  });
}

void add_client(CLI::App& bulkping, int& exit_code) {
  const auto options = std::make_shared<BulkpingClientOptions>();
  CLI::App* app = bulkping.add_subcommand("client", "exchange messages and bulk with a server, both ways, all checked");
  options->server = "127.0.0.1";
  app->add_option("--server", options->server, "the server's address, or the beginning of it [127.0.0.1@udp:20480:39:12]")
      ->type_name("ADDRESS");
  app->add_option("--address", options->address, "own address, or the beginning of it [the nid that leads to the server, rest free]")
      ->type_name("ADDRESS");
  app->add_option("--loops", options->loops, "of each thread: a message and its reply, bulk there, bulk back")
      ->check(CLI::Range(1U, ~0U))
      ->capture_default_str();
  app->add_option("--bulk-size", options->bulk_size, "1 to 1G [1M]")->transform(byte_size(kBulkSizeMax));
  app->add_option("--threads", options->threads, "each with a transfer machine of its own")
      ->check(CLI::Range(1U, kThreadsMax))
      ->capture_default_str();
  app->add_option("--message-size", options->message_size, "of each message sent [256]")->transform(byte_size(kMessageSizeMax));
  add_common(*app, *options);
  app->callback([options, &exit_code] {
    settle(*options);
    exit_code = run_bulkping_client(*options);
  });
}

}  // namespace

void add_bulkping(CLI::App& app, int& exit_code) {
  CLI::App* bulkping = app.add_subcommand("bulkping", "messages and bulk transfers between processes, every payload verified");
  bulkping->require_subcommand(1);
  add_server(*bulkping, exit_code);
  add_client(*bulkping, exit_code);
}

}  // namespace fairlead::tools
