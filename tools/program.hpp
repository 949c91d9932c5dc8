#pragma once

namespace fairlead::tools {

/// Runs the command `fairlead` with these arguments, and returns its exit code. CLI11 is compiled with the subcommands,
/// and not once more for main().
int run_program(int argc, char** argv);

}  // namespace fairlead::tools
