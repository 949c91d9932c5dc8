#pragma once
// What a statistics page says, as a private copy. The page belongs to somebody else: nothing of it is believed before
// it was compared with the layout, and what is being written meanwhile is read again.

#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

#include "observe/stats_layout.hpp"

namespace fairlead::observe {

struct StatsView {
  StatsHeader header;  // its parts within their bounds
  std::vector<StatsCounter> counters;
  std::vector<StatsPeer> peers;
  std::vector<StatsPort> ports;
  std::vector<StatsPair> pairs;
  std::string report;
  std::vector<StatsFlight> flights;  // their events within `events`
  std::vector<FlightEvent> events;

  /// 0 if there is none of that name.
  std::uint64_t counter(std::string_view name) const;
};

/// Of a file that is such a page, or not. invalid: it is none; not_supported: of another layout; again: its owner has
/// been writing all the time, or stopped in the middle.
Result<StatsView> read_stats(int file);
/// The header alone.
Result<StatsHeader> read_stats_header(int file);

/// A field of a record, by the layout.
struct StatsValue {
  std::uint64_t number = 0;
  std::string_view text{};  // in the record
};
StatsValue value_of(const StatsField& field, const std::byte* record);

/// Up to its first zero.
template <std::size_t kLetters>
std::string_view text_of(const StatsText<kLetters>& text) {
  const std::string_view all(text.data(), kLetters);
  return all.substr(0, all.find('\0'));
}

}  // namespace fairlead::observe
