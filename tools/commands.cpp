#include "tools/commands.hpp"

#include <fmt/format.h>

#include "tools/base/command_line.hpp"
#include "tools/base/version.hpp"

namespace fairlead::tools {

std::span<const CommandExamples> command_examples() {
  static const std::vector<CommandExamples> examples{
      {"bulkping",
       {"bulkping server --address 10.0.0.5", "bulkping client --server 10.0.0.5 --bulk-size 64M --loops 100"}},
      {"nettest",
       {"nettest agent --address 10.0.0.5",
        "nettest console --clients 10.0.0.1,10.0.0.2 --servers 10.0.0.5 --time 10"}},
      {"perf",
       {"perf latency", "perf bandwidth --path shm --size 4K,64K", "perf latency --compare --report report.html",
        "perf bandwidth --loss 0,1%", "perf --server", "perf latency 10.0.0.5"}},
      {"run",
       {"run -- ib_write_bw", "run -- ib_write_bw 127.0.0.1",
        "run --path udp --fault drop=1%,reorder=5:16 --explain -- ./program", "run --check ./program"}},
      {"keygen",
       {"keygen ~/.config/fairlead/x25519", "keygen --psk ~/fairlead.psk", "keygen --add ~/.config/fairlead/x25519"}},
      {"doctor", {"doctor", "doctor 10.0.0.5", "doctor --json 10.0.0.5@udp:20481"}},
      {"top", {"top", "top --pid 4711", "top --peer 10.0.0.5", "top --once --json", "top --openmetrics --listen 9464"}},
      {"flight", {"flight 4711"}},
      {"ps", {"ps", "ps --json"}},
      {"explain", {"explain 12", "explain silent", "explain link.resends", "explain FAIRLEAD_WAIT"}},
      {"options", {"options", "options --json"}},
  };
  return examples;
}

void add_commands(CLI::App& app, int& exit_code) {
  add_bulkping(app, exit_code);
  add_nettest(app, exit_code);
  add_perf(app, exit_code);
  add_run(app, exit_code);
  add_keygen(app, exit_code);
  add_doctor(app, exit_code);
  add_top(app, exit_code);
  add_flight(app, exit_code);
  add_ps(app, exit_code);
  add_explain(app, exit_code);
  add_options(app, exit_code);
  app.add_subcommand("version", "print the release, and what it was built with")->callback([] {
    fmt::print("{}\n", version_text());
  });
  // Four columns of indentation: tools that parse the help look for subcommands at two.
  for (const auto& [command, lines] : command_examples()) {
    std::string text = "Examples:";
    for (const std::string_view line : lines) text += fmt::format("\n    fairlead {}", line);
    app.get_subcommand(std::string(command))->footer(text);
  }
}

}  // namespace fairlead::tools
