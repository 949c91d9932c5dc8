#include "engine/link_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace fairlead::engine {
namespace {

using Counters = link::LinkCounters;

struct CounterRow {
  std::string_view name;
  std::uint64_t Counters::* value;
};

constexpr CounterRow kRows[] = {
    {"datagrams_received", &Counters::datagrams_received},
    {"bytes_received", &Counters::bytes_received},
    {"data_received", &Counters::data_received},
    {"acks_received", &Counters::acks_received},
    {"hellos_received", &Counters::hellos_received},
    {"hello_acks_received", &Counters::hello_acks_received},
    {"hello_retries_received", &Counters::hello_retries_received},
    {"hello_refusals_received", &Counters::hello_refusals_received},
    {"rekeys_received", &Counters::rekeys_received},
    {"rekey_answers_received", &Counters::rekey_answers_received},
    {"resets_received", &Counters::resets_received},
    {"closes_received", &Counters::closes_received},
    {"probes_received", &Counters::probes_received},
    {"probe_answers_received", &Counters::probe_answers_received},
    {"parts_received", &Counters::parts_received},
    {"parts_dropped", &Counters::parts_dropped},
    {"messages_delivered", &Counters::messages_delivered},
    {"chunks_delivered", &Counters::chunks_delivered},
    {"message_bytes_delivered", &Counters::message_bytes_delivered},
    {"acks_old", &Counters::acks_old},
    {"acks_repeated", &Counters::acks_repeated},
    {"duplicates_reported", &Counters::duplicates_reported},
    {"datagrams_sent", &Counters::datagrams_sent},
    {"bytes_sent", &Counters::bytes_sent},
    {"trains_sent", &Counters::trains_sent},
    {"trains_returned", &Counters::trains_returned},
    {"segments_sent", &Counters::segments_sent},
    {"segments_acked", &Counters::segments_acked},
    {"segments_abandoned", &Counters::segments_abandoned},
    {"segments_in_flight", &Counters::segments_in_flight},
    {"whole_sent", &Counters::whole_sent},
    {"chunks_sent", &Counters::chunks_sent},
    {"acks_sent", &Counters::acks_sent},
    {"hellos_sent", &Counters::hellos_sent},
    {"hello_acks_sent", &Counters::hello_acks_sent},
    {"hello_retries_sent", &Counters::hello_retries_sent},
    {"hello_refusals_sent", &Counters::hello_refusals_sent},
    {"rekeys_sent", &Counters::rekeys_sent},
    {"rekey_answers_sent", &Counters::rekey_answers_sent},
    {"resets_sent", &Counters::resets_sent},
    {"closes_sent", &Counters::closes_sent},
    {"probes_sent", &Counters::probes_sent},
    {"probe_answers_sent", &Counters::probe_answers_sent},
    {"parts_sent", &Counters::parts_sent},
    {"grants_given", &Counters::grants_given},
    {"grants_expired", &Counters::grants_expired},
    {"turns_asked", &Counters::turns_asked},
    {"sizes_lowered", &Counters::sizes_lowered},
    {"sizes_raised", &Counters::sizes_raised},
    {"size_hints", &Counters::size_hints},
    {"answers_withheld", &Counters::answers_withheld},
    {"resends", &Counters::resends},
    {"resends_fast", &Counters::resends_fast},
    {"resends_probe", &Counters::resends_probe},
    {"resends_timeout", &Counters::resends_timeout},
    {"resends_recut", &Counters::resends_recut},
    {"timeouts", &Counters::timeouts},
    {"messages_submitted", &Counters::messages_submitted},
    {"message_bytes_submitted", &Counters::message_bytes_submitted},
    {"messages_ok", &Counters::messages_ok},
    {"messages_canceled", &Counters::messages_canceled},
    {"messages_failed", &Counters::messages_failed},
    {"messages_pending", &Counters::messages_pending},
    {"submits_refused", &Counters::submits_refused},
    {"window_segments_most", &Counters::window_segments_most},
    {"window_bytes_most", &Counters::window_bytes_most},
    {"reordered_most", &Counters::reordered_most},
    {"sessions_opened", &Counters::sessions_opened},
    {"sessions_lost", &Counters::sessions_lost},
    {"peers_forgotten", &Counters::peers_forgotten},
    {"half_open_dropped", &Counters::half_open_dropped},
    {"sessions_sealed", &Counters::sessions_sealed},
    {"keys_changed", &Counters::keys_changed},
    {"resets_doubted", &Counters::resets_doubted},
    {"round_trips_measured", &Counters::round_trips_measured},
};

// "wrong address" -> "wrong_address"
std::string as_name(std::string_view text) {
  std::string name(text);
  std::ranges::replace(name, ' ', '_');
  return name;
}

}  // namespace

void add_link_counters(const Counters& counters, observe::EngineFacts& facts) {
  for (const CounterRow& row : kRows) facts.counters.push_back({fmt::format("link.{}", row.name), counters.*row.value});
  for (std::size_t i = 0; i < counters.malformed.size(); ++i) {
    const auto reason = static_cast<wire::DropReason>(i);
    facts.counters.push_back(
        {fmt::format("link.malformed.{}", as_name(wire::to_string(reason))), counters.malformed[i]});
  }
  for (std::size_t i = 0; i < counters.refused.size(); ++i) {
    const auto reason = static_cast<link::Refusal>(i);
    facts.counters.push_back({fmt::format("link.refused.{}", as_name(link::to_string(reason))), counters.refused[i]});
  }
}

}  // namespace fairlead::engine
