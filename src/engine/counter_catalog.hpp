#pragma once
// All counters of the statistics by full name, with their meaning, for `fairlead explain` and docs/counters.md. New
// counters enter it through the rows of their struct (base/counter_row.hpp).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "link/link_counters.hpp"
#include "wire/drop_reason.hpp"

namespace fairlead::engine {

enum class CounterKind : std::uint8_t {
  total,  // only grows
  gauge,  // a present state, or the most so far
};

struct CounterMeaning {
  std::string name;      // "link.resends_fast"
  std::string sentence;  // begins in lower case, without a full stop
  CounterKind kind = CounterKind::total;
};

std::vector<CounterMeaning> counter_catalog();

/// Returns for example "link.malformed.wrong_checksum"; refused_name() returns for example "link.refused.too_old".
std::string malformed_name(wire::DropReason reason);
std::string refused_name(link::Refusal reason);

}  // namespace fairlead::engine
