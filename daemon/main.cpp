// fairleadd: the host engine as a program (docs/host.md).

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <fairlead/log.hpp>

#include "base/environment.hpp"
#include "base/local_addresses.hpp"
#include "base/log_file.hpp"
#include "daemon/successor.hpp"
#include "daemon/supervisor.hpp"
#include "host/replacement.hpp"
#include "host/service.hpp"

namespace {

using namespace fairlead;

constexpr int kEndingSignals[] = {SIGTERM, SIGINT, SIGHUP};
host::Service* running = nullptr;  // for the signal handler

void end(int) {
  running->stop();
}

void hold_signals(bool is_held) {
  sigset_t all;
  ::sigemptyset(&all);
  for (const int signal : kEndingSignals) ::sigaddset(&all, signal);
  ::pthread_sigmask(is_held ? SIG_BLOCK : SIG_UNBLOCK, &all, nullptr);
}

/// Blocks the ending signals. Pending signals and the mask survive exec(). The next program unblocks the signals when
/// its handlers are installed.
class SignalsHeld {
 public:
  SignalsHeld() { hold_signals(true); }
  ~SignalsHeld() { hold_signals(false); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
};

/// Whoever starts this program may close them. Log lines would then go to whatever has their numbers.
void open_standard_descriptors() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number)
    if (::fcntl(number, F_GETFD) < 0) (void)::open("/dev/null", O_RDWR);
}

/// Applications try the same paths: host::default_host_file().
std::string default_socket() {
  const char* const directory = base::environment("XDG_RUNTIME_DIR");
  return ::geteuid() != 0 && directory != nullptr ? fmt::format("{}/fairlead/host", directory) : "/run/fairlead/host";
}

struct Settings {
  std::string socket = default_socket();
  std::vector<std::string> engines, rules, users;
  host::ServiceOptions service;
  bool is_check = false, is_replace = false;
  int resumed = -1, rehearsed = -1;  // descriptor of a saved state; -1: none
};

Result<base::SocketAddress> parse_engine(const std::string& text) {
  const auto colon = text.rfind(':');
  const bool has_port = colon != std::string::npos && (text.find(':') == colon || text[colon - 1] == ']');
  std::string ip = has_port ? text.substr(0, colon) : text;
  if (ip.starts_with('[') && ip.ends_with(']')) ip = ip.substr(1, ip.size() - 2);
  unsigned port = 0;
  if (has_port && !CLI::detail::lexical_cast(text.substr(colon + 1), port)) port = 65536;
  auto address = port > 65535 ? Result<base::SocketAddress>(std::unexpected(Error{}))
                              : base::SocketAddress::from_ip(ip, static_cast<std::uint16_t>(port));
  if (address) return address;
  return std::unexpected(Error{Status::invalid, 0,
                               fmt::format("engine '{}': want an address of this host, as 10.0.0.5, 10.0.0.5:20480 or "
                                           "[fe80::1%2]:20480",
                                           text)});
}

Result<> complete(Settings& settings) {
  for (const std::string& text : settings.engines) {
    const auto address = parse_engine(text);
    if (!address) return std::unexpected(address.error());
    settings.service.engines.push_back(*address);
  }
  for (const std::string& text : settings.rules) {
    const auto rule = host::Rule::parse(text);
    if (!rule) return std::unexpected(rule.error());
    settings.service.rules.push_back(*rule);
  }
  for (const std::string& text : settings.users) {
    const auto rule = text == "all" ? host::Rule{} : host::Rule::parse("user=" + text);
    if (!rule) {
      return std::unexpected(
          Error{Status::invalid, 0,
                fmt::format("allow-user '{}': want a user of this host, by name or number (`id -u`), or all", text)});
    }
    settings.service.rules.push_back(*rule);
  }
  auto options = engine::EngineOptions::from_environment();
  if (!options) return std::unexpected(std::move(options.error()));
  settings.service.engine = *options;
  settings.service.file = settings.socket;
  return {};
}

/// Creates the directory of the socket file, if it is missing. Other users may enter it only if there are rules. An
/// error appears when the socket is created.
void make_directory(const Settings& settings) {
  const bool is_for_others = !settings.service.rules.empty();
  const std::filesystem::path directory = std::filesystem::path(settings.socket).parent_path();
  ::mkdir(directory.c_str(), is_for_others ? 0755 : 0700);
}

/// Raises the soft limit of descriptors to the hard limit. Each port of an application takes two descriptors.
void raise_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<std::unique_ptr<host::Service>> open_service(Settings& settings) {
  if (settings.resumed < 0) {
    settings.service.inherited = daemon::take_inherited_socket();
    if (!settings.service.inherited.is_open()) make_directory(settings);
    return host::Service::open(std::move(settings.service));
  }
  const auto state = daemon::read_state(base::FileDescriptor(settings.resumed));
  if (!state) return std::unexpected(state.error());
  return host::Service::resume(std::move(settings.service), *state);
}

/// Quiesces the service. A try fails while peers share memory, or have not acknowledged what was sent. The daemon
/// serves between tries.
Result<host::Handover> come_to_rest(host::Service& service) {
  constexpr int kTries = 20;  // with the peers over the network
  constexpr auto kBetweenTries = std::chrono::milliseconds(50);
  constexpr auto kPartWithin = std::chrono::seconds(4);
  const base::Instant part_until = base::MonotonicClock::now() + kPartWithin;
  auto handover = service.hand_over();
  for (int tries = 1; !handover;) {
    const Status why = handover.error().status;
    const bool is_parting = why == Status::in_use && base::MonotonicClock::now() < part_until;
    const bool is_moving = why == Status::again && tries++ < kTries;
    if (!is_parting && !is_moving) break;
    if (service.run(base::MonotonicClock::now() + kBetweenTries)) break;
    daemon::notify("WATCHDOG=1");
    handover = service.hand_over();
  }
  return handover;
}

/// Replaces this program. Rehearses the new program in a child while this one serves, then quiesces and executes it.
/// Returns only on failure, with the reason; this program then continues.
Error replace(host::Service& service, const daemon::Successor& successor) try {
  using std::chrono::milliseconds;
  const Error is_to_end{Status::canceled, 0, "the daemon is stopping"};
  auto program = successor.find();
  if (!program) return std::move(program.error());
  auto trial = come_to_rest(service);
  if (!trial) return service.is_stopped() ? is_to_end : std::move(trial.error());
  auto rehearsal = successor.rehearse(*program, trial->state);
  service.go_on(std::move(*trial));
  while (rehearsal && !rehearsal->is_over()) {
    if (service.run(base::MonotonicClock::now() + milliseconds(10))) return is_to_end;
    daemon::notify("WATCHDOG=1");
  }
  if (rehearsal)
    if (auto good = rehearsal->result(); !good) rehearsal = std::unexpected(std::move(good.error()));
  if (!rehearsal) return std::move(rehearsal.error());
  const SignalsHeld held;
  auto handover = come_to_rest(service);
  if (!handover) return service.is_stopped() ? is_to_end : std::move(handover.error());
  Error why = service.is_stopped() ? is_to_end : successor.take_over(*program, handover->state, handover->descriptors);
  service.go_on(std::move(*handover));
  return why;
} catch (const std::bad_alloc&) {
  service.go_on({});
  return {Status::no_memory, ENOMEM, "not enough memory for the replacement"};
}

/// Asks the running daemon to replace itself, and waits for the result.
Result<> ask_for_replacement(const Settings& settings) {
  const auto pause = host::ask_for_replacement(settings.socket);
  if (!pause) return std::unexpected(pause.error());
  fmt::print("replaced; applications were not served for {}\n", *pause);
  return {};
}

/// A host may get an address later, so that is no error.
void note_missing_addresses(const std::vector<base::SocketAddress>& engines) {
  const auto own = base::local_addresses();
  if (!own) return;
  for (const base::SocketAddress& engine : engines) {
    base::SocketAddress any_port = engine;
    any_port.port = 0;
    if (engine.is_loopback() || std::ranges::find(*own, any_port) != own->end()) continue;
    fmt::print("note: no interface of this host has the address of engine {} now; applications cannot use it\n",
               engine.to_string());
  }
}

Result<> serve(Settings& settings, const daemon::Successor& successor) {
  if (settings.is_replace) return ask_for_replacement(settings);
  if (auto completed = complete(settings); !completed) return completed;
  if (settings.rehearsed >= 0) {
    const auto state = daemon::read_state(base::FileDescriptor(settings.rehearsed));
    return state ? host::Service::check(settings.service, *state) : std::unexpected(state.error());
  }
  if (settings.is_check) {
    if (auto good = host::Service::check(settings.service); !good) return good;
    fmt::print("the settings are good; the socket would be {}\n", settings.socket);
    note_missing_addresses(settings.service.engines);
    return {};
  }
  raise_descriptors();
  auto service = open_service(settings);
  if (!service) return std::unexpected(std::move(service.error()));
  running = service->get();
  struct sigaction action{};
  action.sa_handler = end;
  for (const int signal : kEndingSignals) ::sigaction(signal, &action, nullptr);
  hold_signals(false);
  if (settings.resumed < 0) {
    base::tell(
        fmt::format("fairleadd listens at {}; applications attach with FAIRLEAD_CORE=host{}", settings.socket,
                    settings.socket == default_socket() ? "" : fmt::format(" FAIRLEAD_HOST={}", settings.socket)));
  }
  daemon::notify("READY=1");
  // The main loop itself sends WATCHDOG=1, so the supervisor detects a stalled loop. Half of the period leaves a
  // margin.
  const base::Duration beat = daemon::watchdog_period() / 2;
  const auto next_beat = [beat] {
    return beat == base::Duration{} ? base::kNever : base::MonotonicClock::now() + beat;
  };
  while (!(*service)->run(next_beat())) {
    daemon::notify("WATCHDOG=1");
    if ((*service)->takes_replacement_wish()) (*service)->refuse_replacement(replace(**service, successor));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  const daemon::Successor successor(argc, argv);
  Settings settings;
  CLI::App app("the host engine: owns the network, and serves the applications of this host", "fairleadd");
  app.set_config("--config", "", "a file of these options, TOML: socket = \"/run/fairlead/host\"");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.set_version_flag("--version", FAIRLEAD_VERSION);
  app.add_option("--socket", settings.socket, "the socket file that applications connect to")->capture_default_str();
  app.add_option("--engine", settings.engines,
                 "an address that applications may use, with or without a port; default: every local address");
  app.add_option("--allow-user", settings.users,
                 "a user who may attach without a quota, besides root and the daemon's user: a name, a number, or all");
  app.add_option("--rule", settings.rules,
                 "a user or group who may attach with a quota, as \"user=alice portals=30-39 ports=4 operations=1000 "
                 "events=4000 pairs=64 posts=16M memory=1G rate=10M\" or \"group=hpc\"; the first rule that matches a "
                 "process applies")
      ->allow_extra_args(false);
  app.add_option("--applications", settings.service.applications_max, "processes that may be attached at once")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--applications-per-user", settings.service.applications_per_user_max,
                 "processes of one user that may be attached at once")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--engines-max", settings.service.engines_max, "engines, each with a UDP port of its own")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option(
         "--threads", settings.service.threads,
         "threads that serve applications; each has engines of its own, and --engines-max is divided among them")
      ->check(CLI::Range(1U, host::kThreadsMax))
      ->capture_default_str();
  app.add_option("--processors", settings.service.processors,
                 "numbers of processors, as 0,2,3: thread i runs on the i-th of them; default: threads run on any")
      ->delimiter(',')
      ->expected(1, 4096);
  app.add_flag("--check", settings.is_check, "check the settings, and exit")->configurable(false);
  app.add_flag("--replace", settings.is_replace,
               "replace the fairleadd that listens at --socket by the program now at its path; applications are not "
               "interrupted, and if the replacement fails, the old one continues")
      ->configurable(false);
  app.add_option(daemon::Successor::kResume, settings.resumed)->group("")->configurable(false);
  app.add_option(daemon::Successor::kRehearse, settings.rehearsed)->group("")->configurable(false);
  app.footer("The settings of its engines are those of every program: see `fairlead options`.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ConfigError& error) {
    base::tell(
        fmt::format("fairleadd: --config {}: {}: want lines such as threads = 2, with the long options of "
                    "fairleadd --help",
                    app.get_config_ptr()->as<std::string>(), error.what()));
    return 2;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    base::tell(fmt::format("fairleadd: {}: `fairleadd --help` lists what there is", error.what()));
    return 2;
  }
  try {
    if (base::environment("FAIRLEAD_LOG") == nullptr) (void)set_log_levels("info");
    const auto served = serve(settings, successor);
    if (served) return settings.rehearsed >= 0 ? daemon::Rehearsal::kCouldGoOn : 0;
    base::tell(fmt::format("fairleadd: {}", served.error().message));
  } catch (const std::exception& error) {
    base::tell(fmt::format("fairleadd: {}", error.what()));
  }
  return 1;
}
