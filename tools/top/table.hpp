#pragma once
// The output of `fairlead top` for people.

#include <string>
#include <string_view>
#include <vector>

#include <fairlead/time.hpp>

#include "tools/top/engines.hpp"

namespace fairlead::tools {

struct TopView {
  std::string sort = "pid";  // a heading
  std::string filter;        // text that each shown row contains
};

/// Returns the headings by which rows can be sorted.
std::vector<std::string> top_headings();

/// Returns a row per engine. With a snapshot from `seconds` before, figures are per second; without, since the start.
std::string top_table(const SeenEngines& now, const SeenEngines* before, double seconds, const TopView& view);

/// Returns all details of one engine, in several lines.
std::string top_detail(const SeenEngine& engine, Instant now);

}  // namespace fairlead::tools
