// The one command. Each subcommand stands in a file of its own.
#include <fmt/format.h>

#include <exception>

#include "tools/command_line.hpp"
#include "tools/exit_code.hpp"
#include "tools/version.hpp"

int main(int argc, char** argv) {
  using namespace fairlead::tools;
  CLI::App app("RDMA semantics on any Linux host: messages and bulk transfers with completion events", "fairlead");
  int exit_code = kExitOk;
  want_subcommand(app);
  app.set_version_flag("--version", version_text());
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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse(app, error);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fairlead: {}\n", error.what());
    return kExitFailed;
  }
  return exit_code;
}
