#pragma once
// Runs other projects' benchmark programs ("rivals") interleaved with ours, and reports the missing ones.

#include <string>
#include <vector>

#include "tools/perf/report.hpp"
#include "tools/perf/rivals.hpp"

namespace fairlead::tools {

class PerfComparison {
 public:
  /// Reports on standard error which rivals for this path and operation are missing, and what to install.
  PerfComparison(const PerfOptions& options, std::uint64_t size);

  /// Runs each rival once. One that fails is reported on standard error and not run again.
  void take_turns(Duration time);
  /// Returns the medians of all runs, with the ratio of ours to each.
  std::vector<PerfRow> rows(const PerfRow& ours) const;

 private:
  struct Entrant {
    const Rival* rival;
    std::vector<RivalFigure> figures;
    bool is_out = false;
  };

  PerfOp op_;
  RivalTask task_;
  std::vector<Entrant> entrants_;
};

}  // namespace fairlead::tools
