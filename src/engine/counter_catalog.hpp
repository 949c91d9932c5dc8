#pragma once
// Every counter of the statistics by its full name, with what it counts: for `fairlead explain` and docs/counters.md.
// New counters come here by the rows of their struct (base/counter_row.hpp).

#include <string>
#include <string_view>
#include <vector>

#include "link/link_counters.hpp"
#include "wire/drop_reason.hpp"

namespace fairlead::engine {

struct CounterMeaning {
  std::string name;      // "link.resends_fast"
  std::string sentence;  // begins in lower case, no full stop
};

std::vector<CounterMeaning> counter_catalog();

/// "link.malformed.wrong_checksum" and "link.refused.too_old".
std::string malformed_name(wire::DropReason reason);
std::string refused_name(link::Refusal reason);

}  // namespace fairlead::engine
