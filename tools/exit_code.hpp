#pragma once
// How `fairlead` ends. Errors stand in one line on standard error, before it.

namespace fairlead::tools {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,         // something happened at run time
  kExitUsage = 2,          // the command line is wrong; nothing was sent
  kExitInterrupted = 130,  // Ctrl-C before the work was done, as shells say it
};

}  // namespace fairlead::tools
