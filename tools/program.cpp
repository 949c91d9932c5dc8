#include "tools/program.hpp"

#include <fmt/format.h>

#include <exception>

#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/base/version.hpp"
#include "tools/commands.hpp"

namespace fairlead::tools {

int run_program(int argc, char** argv) {
  CLI::App app("RDMA semantics on any Linux host: messages and bulk transfers with completion events", "fairlead");
  int exit_code = kExitOk;
  want_subcommand(app);
  app.set_version_flag("--version", version_text());
  add_commands(app, exit_code);
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

}  // namespace fairlead::tools
