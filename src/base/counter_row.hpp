#pragma once
// Describes each counter of a struct by a row: the member, its name in the statistics, and a sentence. The statistics,
// `fairlead explain` and docs/counters.md are made from the rows. A static_assert beside the rows keeps them complete.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fairlead::base {

template <typename Counters>
struct CounterRow {
  std::string_view name;  // without the prefix of the struct: "resends_fast"
  std::uint64_t Counters::* value = nullptr;
  std::string_view sentence;
};

/// Returns whether each counter of the struct has one row. `others`: counters in arrays, which have rows by reason.
template <typename Counters, std::size_t kRows>
consteval bool are_complete(const std::array<CounterRow<Counters>, kRows>& rows, std::size_t others = 0) {
  for (std::size_t i = 0; i < kRows; ++i) {
    if (rows[i].name.empty() || rows[i].sentence.empty()) return false;
    for (std::size_t j = 0; j < i; ++j)
      if (rows[i].value == rows[j].value || rows[i].name == rows[j].name) return false;
  }
  return sizeof(Counters) == (kRows + others) * sizeof(std::uint64_t);
}

}  // namespace fairlead::base
