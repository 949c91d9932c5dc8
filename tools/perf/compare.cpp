#include "tools/perf/compare.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cstdio>

#include "tools/base/free_port.hpp"
#include "tools/perf/row_maker.hpp"
#include "tools/process/executable.hpp"

namespace fairlead::tools {
namespace {

double median_of(const std::vector<RivalFigure>& figures, double RivalFigure::* which) {
  std::vector<double> values;
  values.reserve(figures.size());
  for (const RivalFigure& figure : figures) values.push_back(figure.*which);
  return perf_median(std::move(values));
}

}  // namespace

PerfComparison::PerfComparison(const PerfOptions& options, std::uint64_t size)
    : op_(options.op), task_{.op = options.op, .size = size, .cpus = {options.cpus[0], options.cpus[1]}} {
  for (const Rival& rival : all_rivals()) {
    const bool is_wanted = (rival.path.empty() || rival.path == options.path) && !rival.words(task_, false).empty();
    if (!is_wanted) continue;
    if (find_executable(std::string(rival.program), kSystemFolders)) {
      entrants_.push_back({&rival, {}});
      continue;
    }
    fmt::print(stderr, "fairlead: {}: no row for it, there is no program {} here{}{}\n", rival.name, rival.program,
               rival.package.empty() ? "" : ": apt-get install ", rival.package);
  }
}

void PerfComparison::take_turns(Duration time) {
  task_.time = time;
  for (Entrant& entrant : entrants_) {
    if (entrant.is_out) continue;
    task_.port = free_port(SOCK_STREAM);
    const auto figure = run_rival(*entrant.rival, task_);
    if (figure) {
      entrant.figures.push_back(*figure);
      continue;
    }
    entrant.is_out = true;
    fmt::print(stderr, "fairlead: {}\n", figure.error().message);
  }
}

std::vector<PerfRow> PerfComparison::rows(const PerfRow& ours) const {
  std::vector<PerfRow> rows;
  for (const Entrant& entrant : entrants_) {
    if (entrant.figures.empty()) continue;
    PerfRow row{.op = ours.op, .path = std::string(entrant.rival->name), .size = ours.size, .times = {}};
    if (op_ == PerfOp::latency) row.typical_us = median_of(entrant.figures, &RivalFigure::one_way_us);
    row.gb_per_s = median_of(entrant.figures, &RivalFigure::gb_per_s);
    row.messages_per_s = median_of(entrant.figures, &RivalFigure::messages_per_s);
    row.canary_ns = ours.canary_ns;
    row.ratio = perf_ratio(op_, ours, row);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace fairlead::tools
