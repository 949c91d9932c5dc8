// `fairlead ps`: lists the applications attached to the host engine.

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "base/shown.hpp"
#include "host/attach.hpp"
#include "host/listing.hpp"
#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/base/text_table.hpp"

namespace fairlead::tools {
namespace {

struct PsOptions {
  std::string file;
  bool is_json = false;
};

std::string program_of(std::int32_t process) {
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", process)), name);
  return base::shown(name);
}

/// Rounds up.
std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{} MiB", (bytes + (1 << 20) - 1) >> 20);
}

/// Returns the socket file to which applications would attach.
Result<std::string> file_of(const PsOptions& options) {
  if (!options.file.empty()) return options.file;
  const auto settings = engine::EngineOptions::from_environment();
  if (!settings) return std::unexpected(settings.error());
  return settings->host().empty() ? host::default_host_file() : settings->host();
}

int run_ps(const PsOptions& options) {
  const auto file = file_of(options);
  if (!file) return report_error(file.error());
  auto attached = host::list_attached(*file);
  if (!attached) {
    if (attached.error().status == Status::refused) attached.error().message += ": start fairleadd, or name its --host";
    return report_error(attached.error());
  }
  TextTable table({"pid", "program", "user", "engine", "ports", "of", "pending", "of", "events", "of", "pairs", "of",
                   "memory", "of", "rate", "for"});
  table.align_left(1);
  table.align_left(3);
  nlohmann::json all = nlohmann::json::array();
  for (const host::AttachedFact& fact : *attached) {
    const std::string program = program_of(fact.process), engine = fact.engine.to_string();
    const std::string rate = fact.bytes_per_second == 0 ? "any" : fmt::format("{} B/s", fact.bytes_per_second);
    table.add({std::to_string(fact.process), program, std::to_string(fact.user), engine, std::to_string(fact.ports),
               std::to_string(fact.ports_max), std::to_string(fact.operations), std::to_string(fact.operations_max),
               std::to_string(fact.events), std::to_string(fact.events_max), std::to_string(fact.pairs),
               std::to_string(fact.pairs_max), mebibytes(fact.registered_bytes),
               fact.registered_max == 0 ? "any" : mebibytes(fact.registered_max), rate,
               fmt::format("{} s", fact.seconds)});
    all.push_back({{"pid", fact.process},
                   {"program", program},
                   {"user", fact.user},
                   {"engine", engine},
                   {"ports", fact.ports},
                   {"pending", fact.operations},
                   {"seconds", fact.seconds},
                   {"pairs", fact.pairs},
                   {"ports_max", fact.ports_max},
                   {"pairs_max", fact.pairs_max},
                   {"operations_max", fact.operations_max},
                   {"events", fact.events},
                   {"events_max", fact.events_max},
                   {"memory", fact.registered_bytes},
                   {"memory_max", fact.registered_max},
                   {"bytes_per_second", fact.bytes_per_second}});
  }
  fmt::print("{}", options.is_json ? all.dump(2) + "\n" : table.to_string());
  return kExitOk;
}

}  // namespace

void add_ps(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("ps", "list the applications that are attached to fairleadd (docs/host.md)");
  auto options = std::make_shared<PsOptions>();
  command->add_option("--host", options->file, "the daemon's socket file; default: where applications look for it");
  command->add_flag("--json", options->is_json, "for programs");
  command->callback([options, &exit_code] { exit_code = run_ps(*options); });
}

}  // namespace fairlead::tools
