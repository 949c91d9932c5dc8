#include "tools/perf/output.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <utility>

#include "base/shown.hpp"
#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/perf/html.hpp"

namespace fairlead::tools {

int put_out(const PerfOutput& output, const std::vector<PerfRow>& rows, const std::vector<CounterLook>& counters) {
  fmt::print("{}", output.is_json ? perf_json(rows) : perf_table(rows));
  if (output.page.empty()) return kExitOk;
  std::ofstream file(output.page);
  auto environment = perf_environment();
  if (!output.server.empty()) environment.emplace_back("other side", "fairlead perf --server at " + output.server);
  file << perf_html({rows, counters, std::move(environment)}) << std::flush;
  if (file.good()) return kExitOk;
  return report_error(
      {Status::system, errno, fmt::format("cannot write {}", base::shown(output.page, base::kPathShown))});
}

}  // namespace fairlead::tools
