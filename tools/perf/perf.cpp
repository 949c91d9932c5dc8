// Command-line options of `fairlead perf latency|bandwidth|rate|am|verbs`.
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "base/shown.hpp"
#include "tools/base/byte_size.hpp"
#include "tools/base/command_line.hpp"
#include "tools/perf/am.hpp"
#include "tools/perf/far_end.hpp"
#include "tools/perf/loss.hpp"
#include "tools/perf/run.hpp"
#include "tools/perf/server.hpp"
#include "tools/perf/verbs.hpp"

namespace fairlead::tools {
namespace {

constexpr int kProcessorMax = 1023;

void add_processors(CLI::App& app, std::vector<int>& cpus) {
  app.add_option("--cpus", cpus, "the two processors to spin on, 0,1 if left out; with HOST only the near one")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0, kProcessorMax).description(""))
      ->type_name("NEAR,FAR");
}

void add_server(CLI::App& app, std::string& server) {
  app.add_option("HOST", server,
                 "HOST or HOST:PORT of a `fairlead perf --server`; left out: a second process of this host")
      ->check([](const std::string& host) {
        return host.empty() ? "it is empty: name a host, or leave HOST out to measure on this host" : std::string();
      });
}

/// Completes the processors. Refuses what a measurement between two hosts cannot have.
template <typename Options>
void check_sides(Options& options, const CLI::App& app) {
  std::vector<int>& cpus = options.cpus;
  if (cpus.size() > 2) throw CLI::ValidationError("--cpus", "name one or two processors, as 0,1");
  if (cpus.empty()) cpus = options.server.empty() ? std::vector{0, 1} : std::vector{0};
  if (options.server.empty() && cpus.size() != 2)
    throw CLI::ValidationError("--cpus", "two sides on this host spin on two processors: name both, as 0,1");
  if (options.server.empty()) return;
  if (cpus.size() != 1)
    throw CLI::ValidationError("--cpus", "name one processor: the far one is an option of `fairlead perf --server`");
  if (options.path != "udp")
    throw CLI::ValidationError("--path", "two hosts share no memory: leave --path or HOST out");
  for (const auto& [option, why] : {std::pair{"--compare", "it runs other programs on this host only"},
                                    std::pair{"--loss", "it lays a wire of its own inside this host"}}) {
    const CLI::Option* const found = app.get_option_no_throw(option);
    if (found != nullptr && !found->empty()) throw CLI::ValidationError(option, fmt::format("{}: leave HOST out", why));
  }
  options.has_floors = false;  // those of this host would say nothing
  options.output.server = options.server;
}

/// Returns why the file cannot be written, before the measurement; empty if it can.
std::string page_obstacle(const std::string& file) {
  if (std::ofstream(file, std::ios::app).good()) return {};
  return fmt::format("cannot write {}: {}", base::shown(file, base::kPathShown),
                     std::generic_category().message(errno));
}

void add_output(CLI::App& app, PerfOutput& output) {
  app.add_flag("--json", output.is_json, "print a JSON array of rows instead of a table");
  app.add_option("--report", output.page, "also write a page with curves for a browser, one self-contained file")
      ->check(CLI::Validator(page_obstacle, ""))
      ->type_name("FILE.html");
}

void add_measurement(CLI::App& perf, PerfOp op, const std::string& name, const std::string& sizes,
                     const std::string& description, int& exit_code) {
  struct Words {
    PerfOptions options;
    std::string sizes;
    std::string losses;
    std::string loss_unit = "packets";
  };
  const auto words = std::make_shared<Words>();
  words->options.op = op;
  words->sizes = sizes;
  CLI::App* app = perf.add_subcommand(name, description);
  app->add_option("--path", words->options.path,
                  "udp: a second process, over the loopback; shm: the same through shared memory; self: a second "
                  "thread, without a network")
      ->check(CLI::IsMember({"udp", "shm", "self"}).description(""))
      ->type_name("udp|shm|self")
      ->capture_default_str();
  CLI::Option* size =
      app->add_option("--size", words->sizes, "one or several, 1 to 64M")->type_name("SIZE,...")->capture_default_str();
  add_seconds(*app, "--seconds", words->options.time, 0.05, "of each row; its floors take as long again");
  if (op == PerfOp::latency) {
    app->add_flag(
        "--loan", words->options.is_loan,
        "send messages by reference: the other side reads them in place and returns them; the floor is that of 8 B");
  } else {
    add_count(*app, "--in-flight", words->options.in_flight, 0U, 4096U, "operations under way at a time, 0: by size");
  }
  CLI::Option* loss = app->add_option("--loss", words->losses,
                                      "measure between two temporary network namespaces, over a link that loses this "
                                      "part; beside TCP")
                          ->type_name("PART,...");
  app->add_option("--loss-unit", words->loss_unit,
                  "packets: single packets; trains: batches as merged by the receiver's device, up to 64 KiB")
      ->check(CLI::IsMember({"packets", "trains"}).description(""))
      ->type_name("packets|trains")
      ->capture_default_str()
      ->needs(loss);
  app->add_flag("--compare", words->options.has_rivals,
                "also run other benchmarks, in turns, if they are installed: ucx_perftest, fi_pingpong, iperf3, "
                "sockperf, qperf, osu_latency, osu_bw")
      ->excludes(loss);
  add_server(*app, words->options.server);
  add_processors(*app, words->options.cpus);
  app->add_flag("!--no-floor", words->options.has_floors, "leave out the rows of the kernel's own sockets");
  add_output(*app, words->options.output);
  app->callback([words, size, loss, app, &exit_code] {
    check_sides(words->options, *app);
    // The goals under loss are defined for one size each.
    if (!loss->empty() && size->empty()) words->sizes = words->options.op == PerfOp::bandwidth ? "64K" : "64";
    auto parsed = parse_byte_sizes(words->sizes, kPerfSizeMax);
    if (!parsed) throw CLI::ValidationError("--size", parsed.error().message);
    words->options.sizes = std::move(*parsed);
    if (loss->empty()) {
      exit_code = run_perf(words->options);
      return;
    }
    if (words->options.path != "udp") throw CLI::ValidationError("--loss", "only --path udp has a wire");
    auto losses = parse_losses(words->losses);
    if (!losses) throw CLI::ValidationError("--loss", losses.error().message);
    const bool is_trains = words->loss_unit == "trains";
    exit_code = run_perf_loss(words->options,
                              {std::move(*losses), is_trains ? LossyWire::Unit::trains : LossyWire::Unit::packets});
  });
}

/// Adds the options that all measurements between two processes share.
template <typename Options>
void add_pair_options(CLI::App& app, Options& options) {
  add_server(app, options.server);
  add_seconds(app, "--seconds", options.time, 0.05, "of each row; its floor takes as long again");
  add_processors(app, options.cpus);
  app.add_option("--path", options.path, "udp: over the loopback; shm: through shared memory")
      ->check(CLI::IsMember({"udp", "shm"}).description(""))
      ->type_name("udp|shm")
      ->capture_default_str();
  app.add_flag("!--no-floor", options.has_floors, "leave out the rows of the platform itself");
  add_output(app, options.output);
  add_engine_settings(app, options.engine);
}

void add_am(CLI::App& perf, int& exit_code) {
  struct Words {
    PerfAmOptions options;
    std::string kind = "medium", sizes = "8";
  };
  const auto words = std::make_shared<Words>();
  CLI::App* app = perf.add_subcommand("am", "active messages: a request and its reply, or many requests one way");
  app->add_option("--kind", words->kind, "of the request; a short one carries up to 64 bytes as its arguments")
      ->check(CLI::IsMember({"short", "medium", "long"}).description(""))
      ->type_name("short|medium|long")
      ->capture_default_str();
  app->add_option("--size", words->sizes, "one or several, 1 to 64M; a medium request has at most 65000")
      ->type_name("SIZE,...")
      ->capture_default_str();
  app->add_flag("--one-way", words->options.is_one_way, "as many requests at a time as there are credits");
  add_count(*app, "--depth", words->options.depth, 1U, 1024U, "credits: requests under way at a time");
  app->add_flag("--unpacked", words->options.is_unpacked,
                "no message is packed: each has a buffer and a completion step");
  add_pair_options(*app, words->options);
  app->callback([words, app, &exit_code] {
    auto parsed = parse_byte_sizes(words->sizes, kPerfSizeMax);
    if (!parsed) throw CLI::ValidationError("--size", parsed.error().message);
    PerfAmOptions& options = words->options;
    options.sizes = std::move(*parsed);
    options.kind = words->kind == "short" ? AmKind::brief : words->kind == "medium" ? AmKind::medium : AmKind::large;
    check_sides(options, *app);
    exit_code = run_perf_am(options);
  });
}

void add_verbs(CLI::App& perf, int& exit_code) {
  struct Words {
    PerfVerbsOptions options;
    std::string op = "send", sizes = "8";
  };
  static const auto kOps = [] {
    std::map<std::string, VerbsOp> ops;
    for (const VerbsOp op : {VerbsOp::send, VerbsOp::write, VerbsOp::read, VerbsOp::fetch_add, VerbsOp::compare_swap})
      ops.emplace(name_of(op), op);
    return ops;
  }();
  const auto words = std::make_shared<Words>();
  CLI::App* app = perf.add_subcommand("verbs", "queue pairs: sends, one-sided writes and reads, atomics");
  app->add_option("--op", words->op, "send and write: one-way time, half a round trip; the others: until completion")
      ->check(CLI::IsMember(kOps).description(""))
      ->type_name("send|write|read|fetch_add|compare_swap")
      ->capture_default_str();
  app->add_option("--size", words->sizes, "one or several, 1 to 64M; atomics have 8")
      ->type_name("SIZE,...")
      ->capture_default_str();
  app->add_flag("--stream", words->options.is_stream, "many at a time instead of one");
  add_count(*app, "--depth", words->options.depth, 1U, 1024U, "requests under way at a time, of a stream");
  add_pair_options(*app, words->options);
  app->callback([words, app, &exit_code] {
    auto parsed = parse_byte_sizes(words->sizes, kPerfSizeMax);
    if (!parsed) throw CLI::ValidationError("--size", parsed.error().message);
    PerfVerbsOptions& options = words->options;
    options.sizes = std::move(*parsed);
    options.op = kOps.at(words->op);
    const bool is_atomic = options.op == VerbsOp::fetch_add || options.op == VerbsOp::compare_swap;
    if (is_atomic && std::ranges::any_of(options.sizes, [](std::uint64_t size) { return size != 8; }))
      throw CLI::ValidationError("--size", "an atomic has 8 bytes: leave --size out");
    check_sides(options, *app);
    exit_code = run_perf_verbs(options);
  });
}

/// The second process. Internal: only spawn_far() writes its command line.
void add_far(CLI::App& app, int& exit_code) {
  struct Words {
    int control = -1;
    PerfPlace place;
  };
  const auto words = std::make_shared<Words>();
  CLI::App* far = app.add_subcommand("perf-far", "")->group("");
  far->add_option("CONTROL", words->control)->required();
  far->add_option("HOST", words->place.host)->required();
  far->add_option("--cpu", words->place.cpu);
  add_engine_settings(*far, words->place.engine);
  far->callback([words, &exit_code] {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (auto served = serve_perf(PerfControl(base::FileDescriptor(words->control)), words->place); !served)
      exit_code = report_error(served.error());
  });
}

/// `fairlead perf --server`.
void add_server_options(CLI::App& perf, int& exit_code) {
  const auto options = std::make_shared<PerfServerOptions>();
  const auto is_server = std::make_shared<bool>(false);
  CLI::Option* server = perf.add_flag("--server", *is_server,
                                      "be the far side for measurements from other hosts, until Ctrl-C; it trusts "
                                      "whoever reaches the port");
  add_count(perf, "--port", options->port, std::uint16_t{1}, std::uint16_t{65535}, "of the server: TCP, for control")
      ->needs(server);
  perf.add_option("--bind", options->bind, "the server's IP address; :: is all of this host")
      ->type_name("ADDRESS")
      ->capture_default_str()
      ->needs(server);
  add_count(perf, "--cpu", options->cpu, 0, kProcessorMax, "the processor on which the server measures, else any")
      ->default_str("")
      ->needs(server);
  want_subcommand_or(perf, [options, is_server, &exit_code] {
    if (!*is_server) return false;
    options->engine.emplace_back("path", "udp");
    exit_code = run_perf_server(*options);
    return true;
  });
}

}  // namespace

void add_perf(CLI::App& app, int& exit_code) {
  CLI::App* perf = app.add_subcommand(
      "perf",
      "measure latency, bandwidth and message rate between two processes or two hosts, compared with the kernel's "
      "sockets");
  add_server_options(*perf, exit_code);
  add_measurement(*perf, PerfOp::latency, "latency", "8", "messages back and forth, one at a time; one-way times",
                  exit_code);
  add_measurement(*perf, PerfOp::bandwidth, "bandwidth", "64K,1M", "puts into exposed buffers, several in flight",
                  exit_code);
  add_measurement(*perf, PerfOp::rate, "rate", "8", "small messages, many in flight, each with an event at both ends",
                  exit_code);
  add_am(*perf, exit_code);
  add_verbs(*perf, exit_code);
  for (CLI::App* measurement : perf->get_subcommands([](const CLI::App*) { return true; }))
    measurement->excludes(perf->get_option("--server"));
  add_far(app, exit_code);
}

}  // namespace fairlead::tools
