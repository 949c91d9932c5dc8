#pragma once
// The constant parts of the page of `fairlead perf --report`: tools/perf_page.{css,js} and third_party/uplot. CMake
// writes them into page.cpp.in.

#include <string_view>

namespace fairlead::tools {

extern const std::string_view kPageStyle, kPageScript, kPlotStyle, kPlotScript, kPlotLicense;

}  // namespace fairlead::tools
