#include "engine/counter_catalog.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/ensure.hpp"

#include "engine/active_counters.hpp"
#include "engine/application_counters.hpp"
#include "engine/engine_counters.hpp"
#include "link/link_counter_rows.hpp"
#include "path/fault_counters.hpp"
#include "path/path_counter_rows.hpp"
#include "qp/pair_counters.hpp"
#include "shm/counters.hpp"
#include "transport/offences.hpp"

namespace fairlead::engine {
namespace {

using Catalog = std::vector<CounterMeaning>;

// All others are totals.
constexpr std::string_view kGauges[] = {
    "link.segments_in_flight", "link.messages_pending", "link.window_segments_most", "link.window_bytes_most",
    "link.reordered_most",     "path.fault.held",       "qp.held_bytes_most",        "qp.regions",
    "shm.shared_bytes",        "shm.traced_bytes",      "shm.left_in_place",         "shm.huge_bytes",
    "host.moved_bytes",
};

// "wrong address" -> "wrong_address"
std::string as_name(std::string_view text) {
  std::string name(text);
  std::ranges::replace(name, ' ', '_');
  return name;
}

template <typename Counters, std::size_t kRows>
void add(std::string_view prefix, const std::array<base::CounterRow<Counters>, kRows>& rows, Catalog& catalog) {
  for (const auto& row : rows) catalog.push_back({fmt::format("{}{}", prefix, row.name), std::string(row.sentence)});
}

void add_offences(Catalog& catalog) {
  using transport::Offence;
  for (std::size_t i = 0; i < transport::Offences::kKinds; ++i) {
    const std::string_view secrets = to_string(static_cast<transport::Secret>(i));
    catalog.push_back(
        {fmt::format("engine.wrong_secrets.{}", secrets),
         fmt::format("messages of peers with a wrong secret, counted by what the secret protects: {}", secrets)});
  }
  for (const Offence offence : {Offence::holds_memory, Offence::guesses, Offence::takes_no_answers}) {
    catalog.push_back({fmt::format("engine.expelled.{}", to_string(offence)),
                       fmt::format("peers whose session was ended; each {}", describe(offence))});
  }
  catalog.push_back({"engine.trains_not_taken", "times that the path had no room for a train of datagrams"});
}

void add_link_reasons(Catalog& catalog) {
  for (std::size_t i = 0; i < wire::kDropReasons; ++i) {
    const auto reason = static_cast<wire::DropReason>(i);
    catalog.push_back({malformed_name(reason), fmt::format("datagrams dropped: {}", explain(reason))});
  }
  for (std::size_t i = 0; i < link::kRefusals; ++i) {
    const auto reason = static_cast<link::Refusal>(i);
    catalog.push_back({refused_name(reason), fmt::format("segments dropped: {}", explain(reason))});
  }
}

void add_processes(Catalog& catalog) {
  catalog.push_back({"shm.shared_bytes", "bytes of our memory that peers of this host have mapped"});
  catalog.push_back(
      {"shm.traced_bytes", "bytes of our memory that only peers with the right to trace our process can map"});
  catalog.push_back(
      {"shm.left_in_place", "regions that stay where they are because 512 others were moved into shared memory"});
  catalog.push_back({"shm.huge_bytes", "bytes of the shared memory in huge pages"});
  for (std::size_t i = 0; i < shm::CrossMemory::kDenials; ++i) {
    const auto denial = static_cast<shm::CrossMemory::Denial>(i);
    const std::string_view why = shm::CrossMemory::reason(denial);
    catalog.push_back({fmt::format("shm.process.{}", shm::CrossMemory::kNames[i]),
                       why.empty() ? std::string("peers whose other memory is reached by cross-memory attach")
                                   : fmt::format("peers whose other memory is not reached: {}", why)});
  }
}

}  // namespace

std::string malformed_name(wire::DropReason reason) {
  return fmt::format("link.malformed.{}", as_name(to_string(reason)));
}
std::string refused_name(link::Refusal reason) {
  return fmt::format("link.refused.{}", as_name(to_string(reason)));
}

std::vector<CounterMeaning> counter_catalog() {
  Catalog catalog;
  add("engine.", kEngineCounterRows, catalog);
  add("engine.active.", kActiveCounterRows, catalog);
  add("qp.", qp::kPairCounterRows, catalog);
  catalog.push_back({"qp.regions", "memory regions that are registered now"});
  add_offences(catalog);
  add("path.", path::kPathCounterRows, catalog);
  add("path.fault.", path::kFaultCounterRows, catalog);
  add("link.", link::kLinkCounterRows, catalog);
  add_link_reasons(catalog);
  add("shm.", shm::kTransportCounterRows, catalog);
  add("shm.", shm::kConnectionCounterRows, catalog);
  add_processes(catalog);
  add("host.", kApplicationCounterRows, catalog);
  for (const std::string_view name : kGauges) {
    const auto gauge = std::ranges::find(catalog, name, &CounterMeaning::name);
    ENSURE(gauge != catalog.end(), "there is no counter {} to be a gauge", name);
    gauge->kind = CounterKind::gauge;
  }
  return catalog;
}

}  // namespace fairlead::engine
