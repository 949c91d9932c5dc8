#pragma once
// Measures between two network namespaces at several rates of loss. Each measurement is interleaved with the kernel's
// TCP under the same loss, and with plain UDP without loss.

#include <vector>

#include "tools/perf/lossy_wire.hpp"
#include "tools/perf/run.hpp"

namespace fairlead::tools {

struct PerfLoss {
  std::vector<double> parts;  // 0 to 1
  LossyWire::Unit unit = LossyWire::Unit::packets;
};

/// Parses "0,0.1%,1%,5%": at most 64 values, each at most 50%.
Result<std::vector<double>> parse_losses(std::string_view text);

int run_perf_loss(const PerfOptions& options, const PerfLoss& loss);

}  // namespace fairlead::tools
