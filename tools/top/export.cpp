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
#include "tools/top/parts.hpp"

namespace fairlead::tools {
namespace {

using nlohmann::json;
using observe::StatsPart;
using observe::text_of;

constexpr auto kTotal = engine::CounterKind::total, kGauge = engine::CounterKind::gauge;

void add_fields(std::span<const observe::StatsField> fields, const std::byte* record, json& to) {
  for (const observe::StatsField& field : fields) {
    const observe::StatsValue value = value_of(field, record);
    const std::string name(field.name);
    if (field.kind == observe::StatsKind::text)
      to[name] = value.text;
    else if (field.kind == observe::StatsKind::flag)
      to[name] = value.number != 0;
    else
      to[name] = value.number;
  }
}

void add_part(const SeenEngine& engine, StatsPart part, json& to) {
  const auto& row = observe::kStatsPartRows[static_cast<std::size_t>(part)];
  const auto records = records_of(engine, part);
  json all = json::array();
  for (const std::byte* record : records) add_fields(row.fields, record, all.emplace_back());
  to[std::string(row.name)] = std::move(all);
  if (total_of(engine, part) > records.size()) to[fmt::format("{}_total", row.name)] = total_of(engine, part);
}

json json_of(const SeenEngine& engine) {
  json one{{"program", engine.program}, {"is_fresh", engine.is_fresh}, {"report", engine.view.report}};
  add_fields(observe::kStatsHeaderFields, reinterpret_cast<const std::byte*>(&engine.view.header), one);
  one["pid"] = engine.pid;  // as this PID namespace numbers it
  json counters = json::object();
  for (const observe::StatsCounter& counter : engine.view.counters)
    counters[std::string(text_of(counter.name))] = counter.value;
  one["counters"] = std::move(counters);
  for (const StatsPart part : {StatsPart::peers, StatsPart::ports, StatsPart::pairs}) add_part(engine, part, one);
  return one;
}

/// Converts "link.resends_fast" to "fairlead_link_resends_fast".
std::string metric_name(std::string_view counter) {
  std::string name = fmt::format("fairlead_{}", counter);
  std::ranges::replace_if(name, [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result;
}

std::string label_text(std::string_view text) {
  return escaped(base::shown(text, 64));
}

std::string labels_of(const SeenEngine& engine) {
  return fmt::format("{{pid=\"{}\",program=\"{}\",address=\"{}\"}}", engine.pid, label_text(engine.program),
                     label_text(text_of(engine.view.header.address)));
}

struct Metric {
  engine::CounterKind kind;
  std::string_view help;
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
    known.samples += fmt::format("{}{}{} {}\n", name, known.kind == kTotal ? "_total" : "", labels, value);
  };
  std::set<std::string> all_labels;
  for (const SeenEngine& engine : seen.engines) {
    const std::string labels = labels_of(engine);
    // A repeated sample would invalidate the whole output, and a process may publish any page.
    if (!all_labels.insert(labels).second) continue;
    for (const engine::CounterMeaning& meaning : catalog) {
      const auto counter = std::ranges::find(engine.view.counters, std::string_view(meaning.name),
                                             [](const auto& one) { return text_of(one.name); });
      if (counter != engine.view.counters.end())
        add(metric_name(meaning.name), {meaning.kind, meaning.sentence, {}}, labels, counter->value);
    }
    add("fairlead_peers", {kGauge, "peers that are known", {}}, labels, total_of(engine, StatsPart::peers));
    add("fairlead_ports", {kGauge, "ports that are open", {}}, labels, total_of(engine, StatsPart::ports));
    add("fairlead_queue_pairs", {kGauge, "queue pairs that are open", {}}, labels, total_of(engine, StatsPart::pairs));
  }
  std::string text;
  for (const auto& [name, metric] : metrics)
    text += fmt::format("# TYPE {} {}\n# HELP {} {}\n{}", name, metric.kind == kTotal ? "counter" : "gauge", name,
                        escaped(metric.help), metric.samples);
  return text + "# EOF\n";
}

}  // namespace fairlead::tools
