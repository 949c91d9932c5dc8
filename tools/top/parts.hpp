#pragma once
// Parts of a statistics page as text, by the layout's fields.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fairlead/time.hpp>

#include "tools/top/engines.hpp"

namespace fairlead::tools {

/// Returns how many entries the part has in the engine, also those for which the page has no room.
std::uint32_t total_of(const SeenEngine& engine, observe::StatsPart part);
/// Returns the entries of a part: peers, ports or queue pairs.
std::vector<const std::byte*> records_of(const SeenEngine& engine, observe::StatsPart part);

std::string cell_of(const observe::StatsField& field, const std::byte* record);
/// Formats a part as a table. Omits columns that are empty in all rows.
std::string part_table(const SeenEngine& engine, observe::StatsPart part);

/// Formats the time between two moments; `from` may be any number.
std::string seconds_text(std::int64_t from, Instant to);
/// Names the process and its engine, and says whether it answers.
std::string engine_heading(const SeenEngine& engine, Instant now);

}  // namespace fairlead::tools
