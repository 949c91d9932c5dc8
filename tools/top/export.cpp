#include "tools/top/export.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/shown.hpp"
#include "engine/counter_catalog.hpp"

namespace fairlead::tools {
namespace {

using nlohmann::json;
using observe::StatsPart;
using observe::text_of;

void add_fields(std::span<const observe::StatsField> fields, const void* record, json& to) {
  for (const observe::StatsField& field : fields) {
    const observe::StatsValue value = value_of(field, static_cast<const std::byte*>(record));
    const std::string name(field.name);
    if (field.kind == observe::StatsKind::text)
      to[name] = value.text;
    else if (field.kind == observe::StatsKind::flag)
      to[name] = value.number != 0;
    else
      to[name] = value.number;
  }
}

template <typename Record>
void add_part(const SeenEngine& engine, StatsPart part, const std::vector<Record>& records, json& to) {
  const auto& row = observe::kStatsPartRows[static_cast<std::size_t>(part)];
  json all = json::array();
  for (const Record& record : records) add_fields(row.fields, &record, all.emplace_back());
  to[std::string(row.name)] = std::move(all);
  const std::uint32_t total = engine.view.header.parts[static_cast<std::size_t>(part)].total;
  if (total > records.size()) to[fmt::format("{}_total", row.name)] = total;
}

json json_of(const SeenEngine& engine) {
  json one{{"program", engine.program}, {"is_fresh", engine.is_fresh}, {"report", engine.view.report}};
  add_fields(observe::kStatsHeaderFields, &engine.view.header, one);
  one["pid"] = engine.pid;  // as this PID namespace numbers it
  json counters = json::object();
  for (const observe::StatsCounter& counter : engine.view.counters)
    counters[std::string(text_of(counter.name))] = counter.value;
  one["counters"] = std::move(counters);
  add_part(engine, StatsPart::peers, engine.view.peers, one);
  add_part(engine, StatsPart::ports, engine.view.ports, one);
  add_part(engine, StatsPart::pairs, engine.view.pairs, one);
  return one;
}

/// Converts "link.resends_fast" to "fairlead_link_resends_fast".
std::string metric_name(std::string_view counter) {
  std::string name = fmt::format("fairlead_{}", counter);
  std::ranges::replace_if(name, [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
}

std::string label_text(std::string_view text) {
  std::string result;
  for (const char letter : base::shown(text, 64)) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result;
}

std::string labels_of(const SeenEngine& engine) {
  return fmt::format("{{pid=\"{}\",program=\"{}\",address=\"{}\"}}", engine.pid, label_text(engine.program),
                     label_text(text_of(engine.view.header.address)));
}

struct Metric {
  std::string_view type, help;
  std::string samples;
};

}  // namespace

std::string top_json(const SeenEngines& seen) {
  json engines = json::array(), unreadable = json::array();
  for (const SeenEngine& engine : seen.engines) engines.push_back(json_of(engine));
  for (const UnreadableEngine& one : seen.unreadable)
    unreadable.push_back({{"pid", one.pid}, {"program", one.program}, {"reason", one.why.message}});
  const json all{{"engines", std::move(engines)}, {"unreadable", std::move(unreadable)}};
  // ASCII only: terminals interpret some other characters.
  return all.dump(2, ' ', true, json::error_handler_t::replace) + "\n";
}

std::string top_openmetrics(const SeenEngines& seen) {
  const auto catalog = engine::counter_catalog();
  std::map<std::string, Metric> metrics;
  const auto add = [&](const std::string& name, Metric metric, const std::string& labels, std::uint64_t value) {
    auto& known = metrics.try_emplace(name, std::move(metric)).first->second;
    known.samples += fmt::format("{}{} {}\n", name, labels, value);
  };
  std::set<std::string> all_labels;
  for (const SeenEngine& engine : seen.engines) {
    const std::string labels = labels_of(engine);
    // A repeated sample would invalidate the whole output, and a process may publish any page.
    if (!all_labels.insert(labels).second) continue;
    for (const engine::CounterMeaning& meaning : catalog) {
      const auto counter = std::ranges::find(engine.view.counters, std::string_view(meaning.name),
                                             [](const auto& one) { return text_of(one.name); });
      // The tables do not distinguish counters from gauges, so the type is "unknown", as the format names it.
      if (counter != engine.view.counters.end())
        add(metric_name(meaning.name), {"unknown", meaning.sentence, {}}, labels, counter->value);
    }
    const auto total = [&](StatsPart part) { return engine.view.header.parts[static_cast<std::size_t>(part)].total; };
    add("fairlead_peers", {"gauge", "peers that are known", {}}, labels, total(StatsPart::peers));
    add("fairlead_ports", {"gauge", "ports that are open", {}}, labels, total(StatsPart::ports));
    add("fairlead_queue_pairs", {"gauge", "queue pairs that are open", {}}, labels, total(StatsPart::pairs));
  }
  std::string text;
  for (const auto& [name, metric] : metrics)
    text += fmt::format("# TYPE {} {}\n# HELP {} {}\n{}", name, metric.type, name, metric.help, metric.samples);
  return text + "# EOF\n";
}

}  // namespace fairlead::tools
