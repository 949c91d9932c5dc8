#pragma once
// A private copy of a statistics page. The page belongs to another process: everything is checked against the layout
// before use, and what changes meanwhile is read again.

#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

#include "base/time.hpp"
#include "observe/stats_layout.hpp"

namespace fairlead::observe {

struct StatsView {
  StatsHeader header;  // its parts are within their bounds
  std::vector<StatsCounter> counters;
  std::vector<StatsPeer> peers;
  std::vector<StatsPort> ports;
  std::vector<StatsPair> pairs;
  std::string report;
  std::vector<StatsFlight> flights;  // their events are within `events`
  std::vector<FlightEvent> events;

  /// Returns a counter's value; 0 if there is no such counter.
  std::uint64_t counter(std::string_view name) const;
};

/// Reads a file that may be such a page. Errors: invalid (it is none), not_supported (another layout), again (its owner
/// is writing). While the owner writes it retries until `until`.
Result<StatsView> read_stats(int file, base::Instant until);
/// Returns the owner's process number, by its own statement. It never changes, so it is read once.
Result<std::uint32_t> read_stats_pid(int file);
/// Reads only the header.
Result<StatsHeader> read_stats_header(int file, base::Instant until);

inline std::string_view text_before_zero(std::string_view bytes) {
  return bytes.substr(0, bytes.find('\0'));
}
template <std::size_t kLetters>
std::string_view text_of(const StatsText<kLetters>& text) {
  return text_before_zero({text.data(), kLetters});
}

/// A field of a record, decoded by the layout.
struct StatsValue {
  std::uint64_t number = 0;
  std::string_view text{};  // points into the record
};
StatsValue value_of(const StatsField& field, const std::byte* record);

}  // namespace fairlead::observe
