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
#include "tools/perf/far.hpp"
#include "tools/perf/loss.hpp"
#include "tools/perf/run.hpp"
#include "tools/perf/verbs.hpp"

namespace fairlead::tools {
namespace {

constexpr std::uint64_t kSizeMax = std::uint64_t{64} << 20;

void add_processors(CLI::App& app, std::vector<int>& cpus) {
  app.add_option("--cpus", cpus, "the two processors to spin on")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::Range(0, 1023).description(""))
      ->type_name("NEAR,FAR")
      ->capture_default_str();
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
  words->options.cpus = {0, 1};
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
  add_processors(*app, words->options.cpus);
  app->add_flag("!--no-floor", words->options.has_floors, "leave out the rows of the kernel's own sockets");
  add_output(*app, words->options.output);
  app->callback([words, size, loss, &exit_code] {
    // The goals under loss are defined for one size each.
    if (!loss->empty() && size->empty()) words->sizes = words->options.op == PerfOp::bandwidth ? "64K" : "64";
    auto parsed = parse_byte_sizes(words->sizes, kSizeMax);
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
    bool is_unpacked = false;
  };
  const auto words = std::make_shared<Words>();
  words->options.cpus = {0, 1};
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
  app->add_flag("--unpacked", words->is_unpacked, "no message is packed: each has a buffer and a completion step");
  add_pair_options(*app, words->options);
  app->callback([words, &exit_code] {
    auto parsed = parse_byte_sizes(words->sizes, kSizeMax);
    if (!parsed) throw CLI::ValidationError("--size", parsed.error().message);
    PerfAmOptions& options = words->options;
    options.sizes = std::move(*parsed);
    options.kind = words->kind == "short" ? AmKind::brief : words->kind == "medium" ? AmKind::medium : AmKind::large;
    options.engine.emplace_back("path", options.path);
    if (words->is_unpacked) {
      options.engine.emplace_back("active_packed_max", "0");
      options.engine.emplace_back("embedded_max", "0");
    }
    exit_code = run_perf_am(options);
  });
}

void add_verbs(CLI::App& perf, int& exit_code) {
  struct Words {
    PerfVerbsOptions options;
    std::string op = "send", sizes = "8";
  };
  static const std::map<std::string, VerbsOp> kOps{{"send", VerbsOp::send},
                                                   {"write", VerbsOp::write},
                                                   {"read", VerbsOp::read},
                                                   {"fetch_add", VerbsOp::fetch_add},
                                                   {"compare_swap", VerbsOp::compare_swap}};
  const auto words = std::make_shared<Words>();
  words->options.cpus = {0, 1};
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
  app->callback([words, &exit_code] {
    auto parsed = parse_byte_sizes(words->sizes, kSizeMax);
    if (!parsed) throw CLI::ValidationError("--size", parsed.error().message);
    PerfVerbsOptions& options = words->options;
    options.sizes = std::move(*parsed);
    options.op = kOps.at(words->op);
    const bool is_atomic = options.op == VerbsOp::fetch_add || options.op == VerbsOp::compare_swap;
    if (is_atomic && std::ranges::any_of(options.sizes, [](std::uint64_t size) { return size != 8; }))
      throw CLI::ValidationError("--size", "an atomic has 8 bytes: leave --size out");
    options.engine.emplace_back("path", options.path);
    exit_code = run_perf_verbs(options);
  });
}

/// The second process. Internal: only PerfFar writes its command line.
void add_far(CLI::App& app, int& exit_code) {
  struct Words {
    int control = -1;
    std::string address;
    int cpu = 0;
  };
  const auto words = std::make_shared<Words>();
  CLI::App* far = app.add_subcommand("perf-far", "")->group("");
  far->add_option("CONTROL", words->control)->required();
  far->add_option("ADDRESS", words->address)->required();
  far->add_option("CPU", words->cpu)->required();
  far->callback([words, &exit_code] {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (auto served = serve_perf(PerfControl(words->control), words->address, words->cpu); !served) {
      exit_code = report_error(served.error());
    }
  });
}

}  // namespace

void add_perf(CLI::App& app, int& exit_code) {
  CLI::App* perf = app.add_subcommand(
      "perf", "measure latency, bandwidth and message rate between two processes, compared with the kernel's sockets");
  want_subcommand(*perf);
  add_measurement(*perf, PerfOp::latency, "latency", "8", "messages back and forth, one at a time; one-way times",
                  exit_code);
  add_measurement(*perf, PerfOp::bandwidth, "bandwidth", "64K,1M", "puts into exposed buffers, several in flight",
                  exit_code);
  add_measurement(*perf, PerfOp::rate, "rate", "8", "small messages, many in flight, each with an event at both ends",
                  exit_code);
  add_am(*perf, exit_code);
  add_verbs(*perf, exit_code);
  add_far(app, exit_code);
}

}  // namespace fairlead::tools
