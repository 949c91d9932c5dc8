#pragma once
// Other people's measuring programs beside ours: those that are here, in turns with ours; those that are not are named.

#include <string>
#include <vector>

#include "tools/perf_report.hpp"
#include "tools/perf_rivals.hpp"

namespace fairlead::tools {

class PerfComparison {
 public:
  /// Says on standard error which rivals of this path and operation are not here, and what to install.
  PerfComparison(const PerfOptions& options, std::uint64_t size);

  /// Each rival once. One that fails is named on standard error and left out from then on.
  void take_turns(Duration time);
  /// Medians of all turns, each with ours to it.
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
