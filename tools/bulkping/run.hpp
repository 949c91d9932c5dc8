#pragma once
// Runs a bulkping server or client, from its options to its exit code.

#include "tools/bulkping/options.hpp"

namespace fairlead::tools {

/// Runs until Ctrl-C. Prints statistics and returns 0.
int run_bulkping_server(const BulkpingServerOptions& options);

/// Runs until all loops are done (0), the first failure (1), or Ctrl-C (130). Prints statistics in each case.
int run_bulkping_client(const BulkpingClientOptions& options);

}  // namespace fairlead::tools
