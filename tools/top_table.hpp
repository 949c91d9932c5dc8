#pragma once
// What `fairlead top` prints for people.

#include <string>
#include <string_view>
#include <vector>

#include <fairlead/time.hpp>

#include "tools/top_engines.hpp"

namespace fairlead::tools {

struct TopView {
  std::string sort = "pid";  // a heading
  std::string filter;        // stands in each row that is shown
};

/// The headings that rows can be ordered by.
std::vector<std::string> top_headings();

/// A row for each engine. With what was seen `seconds` before, figures are those of a second; without, since the start.
std::string top_table(const SeenEngines& now, const SeenEngines* before, double seconds, const TopView& view);

/// All that one engine shows, several lines each.
std::string top_detail(const SeenEngine& engine, Instant now);

}  // namespace fairlead::tools
