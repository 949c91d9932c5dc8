#pragma once
// Writes the samples of a run as an SVG file, drawn by gnuplot: bytes in flight, round-trip time and goodput over time,
// with faults shaded.

#include <string>

#include <fairlead/error.hpp>

#include "sim/samples.hpp"
#include "sim/scenario.hpp"

namespace fairlead::sim {

Result<> write_svg(const Samples& samples, const Scenario& scenario, const std::string& path);

}  // namespace fairlead::sim
