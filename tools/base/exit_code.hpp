#pragma once
// The exit codes of `fairlead`. One line on standard error explains an error.

namespace fairlead::tools {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,         // a failure at run time
  kExitUsage = 2,          // the command line is wrong; nothing was sent
  kExitInterrupted = 130,  // Ctrl-C before the work was done, as in shells
};

}  // namespace fairlead::tools
