#pragma once
// What a statistics page says, as a private copy. The page belongs to somebody else: nothing of it is believed before
// it was compared with the layout, and what is being written meanwhile is read again.

#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

#include "base/time.hpp"
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

/// Of a file that is such a page, or not. invalid: it is none; not_supported: of another layout; again: its owner is
/// writing. It is read once, and again until `until` while its owner writes.
Result<StatsView> read_stats(int file, base::Instant until);
/// The process that says it is its, by its own number. That never changes: it is read once.
Result<std::uint32_t> read_stats_pid(int file);
/// The header alone.
Result<StatsHeader> read_stats_header(int file, base::Instant until);

inline std::string_view text_before_zero(std::string_view bytes) {
  return bytes.substr(0, bytes.find('\0'));
}
template <std::size_t kLetters>
std::string_view text_of(const StatsText<kLetters>& text) {
  return text_before_zero({text.data(), kLetters});
}

/// A field of a record, by the layout.
struct StatsValue {
  std::uint64_t number = 0;
  std::string_view text{};  // in the record
};
StatsValue value_of(const StatsField& field, const std::byte* record);

}  // namespace fairlead::observe
