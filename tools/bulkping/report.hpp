#pragma once
// The final report of bulkping, for people and (--json) for programs; docs/bulkping.md describes each key.

#include <fairlead/error.hpp>
#include <fairlead/net/statistics.hpp>

#include <string>
#include <vector>

#include "tools/bulkping/figures.hpp"
#include "tools/bulkping/options.hpp"

namespace fairlead::tools {

/// Of one run of a server or a client.
struct RunFacts {
  std::string address;
  Duration duration{};
  net::Statistics queues;
  std::uint64_t messages_dropped = 0;
  std::vector<net::Counter> counters;
  bool is_interrupted = false;
  std::string error;  // empty if nothing failed
};

std::string server_report(const RunFacts& run, const ServerFigures& figures, bool is_verbose);
std::string client_report(const RunFacts& run, const ClientFigures& figures, const BulkpingClientOptions& options);

std::string server_json(const RunFacts& run, const ServerFigures& figures);
std::string client_json(const RunFacts& run, const ClientFigures& figures, const BulkpingClientOptions& options);

}  // namespace fairlead::tools
