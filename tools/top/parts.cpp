#include "tools/top/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/shown.hpp"
#include "tools/base/text_table.hpp"

namespace fairlead::tools {
namespace {

using observe::StatsPart;

template <typename Record>
std::vector<const std::byte*> places_of(const std::vector<Record>& records) {
  std::vector<const std::byte*> places;
  places.reserve(records.size());
  for (const Record& record : records) places.push_back(reinterpret_cast<const std::byte*>(&record));
  return places;
}

}  // namespace

std::uint32_t total_of(const SeenEngine& engine, StatsPart part) {
  return engine.view.header.parts[static_cast<std::size_t>(part)].total;
}

std::vector<const std::byte*> records_of(const SeenEngine& engine, StatsPart part) {
  switch (part) {
    case StatsPart::peers:
      return places_of(engine.view.peers);
    case StatsPart::ports:
      return places_of(engine.view.ports);
    case StatsPart::pairs:
      return places_of(engine.view.pairs);
    default:
      return {};
  }
}

std::string cell_of(const observe::StatsField& field, const std::byte* record) {
  const observe::StatsValue value = value_of(field, record);
  switch (field.kind) {
    case observe::StatsKind::text:
      return base::shown(value.text, 120);
    case observe::StatsKind::flag:
      return value.number != 0 ? "yes" : "no";
    case observe::StatsKind::duration:
      return fmt::format("{:.3f} ms", static_cast<double>(value.number) / 1e6);
    default:
      return fmt::format("{}", value.number);
  }
}

std::string part_table(const SeenEngine& engine, StatsPart part) {
  const auto records = records_of(engine, part);
  const auto& row = observe::kStatsPartRows[static_cast<std::size_t>(part)];
  if (records.empty()) return {};
  std::vector<std::string> headings;
  std::vector<std::vector<std::string>> cells(records.size());
  std::vector<bool> is_text;
  for (const observe::StatsField& field : row.fields) {
    std::vector<std::string> column;
    for (const std::byte* record : records) column.push_back(cell_of(field, record));
    if (std::ranges::all_of(column, &std::string::empty)) continue;
    headings.emplace_back(field.name);
    is_text.push_back(field.kind == observe::StatsKind::text);
    for (std::size_t i = 0; i < column.size(); ++i) cells[i].push_back(std::move(column[i]));
  }
  TextTable table(std::move(headings));
  for (std::size_t i = 0; i < is_text.size(); ++i)
    if (is_text[i]) table.align_left(i);
  for (auto& each : cells) table.add(std::move(each));
  const std::size_t left_off = total_of(engine, part) - records.size();
  return fmt::format("\n{}{}:\n{}", row.name, left_off == 0 ? "" : fmt::format(" ({} more)", left_off),
                     table.to_string());
}

std::string seconds_text(std::int64_t from, Instant to) {
  const auto end = static_cast<double>(to.time_since_epoch().count());
  return fmt::format("{:.1f} s", (end - static_cast<double>(from)) / 1e9);
}

std::string engine_heading(const SeenEngine& engine, Instant now) {
  const observe::StatsHeader& header = engine.view.header;
  std::string text = fmt::format("process {} ({}), engine at {}, {}, started {} ago\n", engine.pid,
                                 base::shown(engine.program), base::shown(observe::text_of(header.address), 64),
                                 base::shown(observe::text_of(header.path)), seconds_text(header.started_at, now));
  if (!engine.is_fresh) {
    text += header.published_at == 0 ? std::string("it does not answer: is it stopped?\n")
                                     : fmt::format("it does not answer: is it stopped? These figures are {} old\n",
                                                   seconds_text(header.published_at, now));
  }
  return text;
}

}  // namespace fairlead::tools
