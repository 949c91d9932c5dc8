// `fairlead run -- PROGRAM`: runs a program with our libibverbs. The program replaces this process, so signals,
// terminal and exit code are its own.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fairlead/log.hpp>
#include <fairlead/verbs/device.hpp>

#include "base/environment.hpp"
#include "base/settings.hpp"
#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/process/executable.hpp"
#include "tools/run/check.hpp"
#include "tools/run/verbs_library.hpp"

namespace fairlead::tools {
namespace {

constexpr int kExitNotFound = 127, kExitNotExecutable = 126;  // as in shells

struct Launch {
  std::vector<std::string> words;
  // Empty or 0: from the environment, else the default.
  std::string path, personality, fault, address, flight, log;
  unsigned devices = 0;
  bool explains = false;
  bool only_checks = false;
  bool uses_host = false;
};

void put(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);
}

/// Precedence: command line, environment, settings file, default.
void put_choice(const char* name, const std::string& option, const char* fallback) {
  if (!option.empty()) return put(name, option);
  const auto present = base::Settings::read_if_good().find(name);
  if (!present || present->text.empty()) put(name, fallback);
}

void put_first(const char* name, const std::string& value) {
  const char* rest = base::environment(name);
  put(name, rest != nullptr && *rest != '\0' ? value + ":" + rest : value);
}

int complain(int code, const std::string& message) {
  fmt::print(stderr, "fairlead: {}\n", message);
  return code;
}

/// Sets the variable of an option that was given. Errors about it name the option.
void put_option(const char* name, const char* option, const std::string& value) {
  if (value.empty()) return;
  put(name, value);
  base::Settings::name_option(name, option);
}

/// Passes the options on, as variables.
void put_settings(const Launch& run) {
  put_choice("FAIRLEAD_PATH", run.path, "auto");
  put_choice("FAIRLEAD_PERSONALITY", run.personality, "roce");
  put_choice("FAIRLEAD_DEVICES", run.devices == 0 ? "" : std::to_string(run.devices), "1");
  put_option("FAIRLEAD_FAULT", "--fault", run.fault);
  put_option("FAIRLEAD_FLIGHT", "--flight", run.flight);
  put_option("FAIRLEAD_LOG", "--log", run.log);
  put_option("FAIRLEAD_DEVICE", "--address", run.address);
  if (run.explains) put("FAIRLEAD_EXPLAIN", "1");
  if (run.uses_host) put_choice("FAIRLEAD_CORE", "", "host");
}

/// Checks what the program would fail on: an address that is not local, a malformed plan, a log that cannot be opened,
/// a wrong settings file, a host engine that does not answer.
Result<> check_device(const Launch& run) {
  const char* const file = base::environment(base::Settings::kFileVariable);
  const bool has_settings =
      run.uses_host || !run.fault.empty() || !run.flight.empty() || !run.log.empty() || file != nullptr;
  if (run.address.empty() && !has_settings) return {};
  const auto devices = verbs::devices();
  if (!devices) return std::unexpected(devices.error());
  if (!has_settings || devices->empty()) return {};
  (void)set_log_levels("warning");  // of this process alone: the program's own engine tells when it starts
  const auto context = verbs::Context::open(devices->front());
  return context ? Result<>{} : std::unexpected(context.error());
}

/// Reports what the program will need and which devices it will see. Starts nothing.
int report_needs(const Launch& run) {
  put_settings(run);
  Findings findings = examine_program(run.words.front());
  if (!std::filesystem::exists(verbs_library()))
    findings.push_back({Verdict::trouble, "library", verbs_library().string() + " does not exist", "reinstall it"});
  const auto usable = check_device(run);
  const auto devices = usable ? verbs::devices() : std::unexpected(usable.error());
  if (!devices) {
    findings.push_back({Verdict::trouble, "device", devices.error().message, {}});
  } else if (devices->empty()) {
    findings.push_back(
        {Verdict::trouble, "device", "no interface with an address is up", "ip link set dev NAME up; or --address"});
  } else {
    findings.push_back({Verdict::good, "device", fmt::format("at {}", devices->front().address), {}});
  }
  print_findings(findings);
  return is_well(findings) ? kExitOk : kExitFailed;
}

int start(const Launch& run) {
  const std::filesystem::path preload = verbs_library();
  std::error_code failed;
  if (!std::filesystem::exists(preload, failed)) {
    return complain(kExitFailed,
                    fmt::format("{} does not exist: it is installed together with this command, so reinstall both",
                                preload.string()));
  }
  const auto program = find_executable(run.words.front());
  if (!program)
    return complain(kExitNotFound, fmt::format("cannot execute {}: there is no such program, or it is not executable",
                                               run.words.front()));
  if (const auto obstacle = preload_obstacle(*program)) {
    return complain(kExitFailed, fmt::format("cannot give {} an RDMA device: {}", *program, *obstacle));
  }
  put_first("LD_PRELOAD", preload.string());
  put_settings(run);

  if (const auto usable = check_device(run); !usable) return complain(kExitUsage, usable.error().message);

  std::vector<char*> arguments;
  for (const std::string& word : run.words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(program->c_str(), arguments.data());  // a script without an interpreter runs in a shell
  return complain(kExitNotExecutable, fmt::format("cannot start {}: {}", run.words.front(), std::strerror(errno)));
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  const auto run = std::make_shared<Launch>();
  CLI::App* run_app =
      app.add_subcommand("run", "run a program with an RDMA device, without an RDMA NIC: fairlead run -- ib_write_bw");
  run_app->add_option("PROGRAM", run->words, "the program and its arguments, after --")->required();
  run_app->add_option("--path", run->path, "the path to peers of this host [FAIRLEAD_PATH, else auto]")
      ->check(CLI::IsMember({"auto", "shm", "udp"}));
  run_app
      ->add_option("--personality", run->personality,
                   "the link layer that the program sees, RoCE or InfiniBand [FAIRLEAD_PERSONALITY, else roce]")
      ->check(CLI::IsMember({"roce", "ib"}));
  run_app->add_option("--fault", run->fault,
                      "inject faults into its datagrams: drop=1%,reorder=5:16,... (docs/faults.md)");
  run_app->add_option("--flight", run->flight,
                      "where stalls and lost peers are reported when they are detected: stderr, or a file");
  run_app
      ->add_option("--log", run->log,
                   "what to log on standard error: warning, info (peers, paths, losses) or info,link=debug")
      ->type_name("LEVELS");
  run_app->add_option("--address", run->address,
                      "the device's address, an address of this host [that of the first interface]");
  add_count(*run_app, "--devices", run->devices, 1U, 16U,
            "number of devices that the program sees [FAIRLEAD_DEVICES, else 1]")
      ->default_str("");
  run_app->add_flag("--host", run->uses_host,
                    "use queue pairs of the host engine, fairleadd [FAIRLEAD_CORE, else host]");
  run_app->add_flag("--explain", run->explains, "print a report at its end, with the causes of failed completions");
  run_app->add_flag("--check", run->only_checks,
                    "do not run the program: report whether it can be given a device, and what it will need");
  run_app->callback([run, &exit_code] { exit_code = run->only_checks ? report_needs(*run) : start(*run); });
}

}  // namespace fairlead::tools
