#pragma once
// Runs one kind of measurement between two network namespaces of our own, at several rates of loss, each interleaved
// with the kernel's TCP under the same loss, and with plain UDP without any.

#include <vector>

#include "tools/lossy_wire.hpp"
#include "tools/perf_run.hpp"

namespace fairlead::tools {

struct PerfLoss {
  std::vector<double> parts;  // 0 to 1
  LossyWire::Unit unit = LossyWire::Unit::packets;
};

/// "0,0.1%,1%,5%", at most 64, each at most 50%.
Result<std::vector<double>> parse_losses(std::string_view text);

int run_perf_loss(const PerfOptions& options, const PerfLoss& loss);

}  // namespace fairlead::tools
