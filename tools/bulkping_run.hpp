#pragma once
// Runs a bulkping server or client from its options to its exit code.

#include "tools/bulkping_options.hpp"

namespace fairlead::tools {

/// Until Ctrl-C, then exit code 0 and the statistics.
int run_bulkping_server(const BulkpingServerOptions& options);

/// Until its loops are done (0), the first failure (1), or Ctrl-C (130), with the statistics in each case.
int run_bulkping_client(const BulkpingClientOptions& options);

}  // namespace fairlead::tools
