#include "tools/top/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "base/shown.hpp"
#include "tools/base/text_table.hpp"
#include "tools/top/parts.hpp"

namespace fairlead::tools {
namespace {

using observe::StatsPart;
using observe::text_of;

/// A column of the table: the sum of the counters whose names begin so.
struct FigureColumn {
  std::string_view heading;
  std::array<std::string_view, 5> counters;
};
constexpr std::array<FigureColumn, 7> kFigures{{
    {"sent", {"link.messages_submitted", "shm.messages_sent"}},
    {"received", {"link.messages_delivered", "shm.messages_delivered"}},
    {"bytes out", {"link.message_bytes_submitted", "shm.bytes_sent"}},
    {"bytes in", {"link.message_bytes_delivered", "shm.bytes_delivered"}},
    {"direct",
     {"engine.direct.puts", "engine.direct.gets", "qp.direct_writes", "qp.direct_reads", "qp.direct_atomics"}},
    {"resent", {"link.resends"}},
    {"dropped", {"engine.dropped.", "qp.dropped_", "link.malformed."}},
}};
constexpr std::array<std::string_view, 6> kCounts{"pid", "program", "address", "peers", "ports", "qps"};
constexpr std::size_t kProgram = 1, kAddress = 2;

struct TopRow {
  std::vector<double> numbers;  // by column; 0 for a text
  std::vector<std::string> cells;
};

bool is_counted(const FigureColumn& column, std::string_view counter) {
  return std::ranges::any_of(column.counters, [&](std::string_view name) {
    const bool is_family = name.ends_with('.') || name.ends_with('_');
    return !name.empty() && (is_family ? counter.starts_with(name) : counter == name);
  });
}

double figure_of(const SeenEngine& engine, const FigureColumn& column) {
  double sum = 0;
  for (const observe::StatsCounter& counter : engine.view.counters)
    if (is_counted(column, text_of(counter.name))) sum += static_cast<double>(counter.value);
  return sum;
}

/// Formats a number as "12.3M": at most six characters.
std::string short_number(double number) {
  constexpr std::array<const char*, 6> kUnits{"", "k", "M", "G", "T", "P"};
  std::size_t unit = 0;
  while (std::abs(number) >= 99'999.5 && unit + 1 < kUnits.size()) {
    number /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f}", number) : fmt::format("{:.1f}{}", number, kUnits[unit]);
}

const SeenEngine* find_again(const SeenEngine& engine, const SeenEngines* before) {
  if (before == nullptr) return nullptr;
  const auto found = std::ranges::find_if(before->engines, [&](const SeenEngine& one) {
    return one.pid == engine.pid && one.view.header.started_at == engine.view.header.started_at &&
           one.view.header.address == engine.view.header.address;
  });
  return found == before->engines.end() ? nullptr : &*found;
}

TopRow row_of(const SeenEngine& engine, const SeenEngines* all_before, double seconds) {
  TopRow row;
  const auto add = [&](double number, std::string cell) {
    row.numbers.push_back(number);
    row.cells.push_back(std::move(cell));
  };
  add(engine.pid, fmt::format("{}{}", engine.is_fresh ? "" : "!", engine.pid));
  add(0, base::shown(engine.program));
  add(0, base::shown(text_of(engine.view.header.address), 64));
  for (const StatsPart part : {StatsPart::peers, StatsPart::ports, StatsPart::pairs})
    add(total_of(engine, part), fmt::format("{}", total_of(engine, part)));
  const SeenEngine* const before = find_again(engine, all_before);
  for (const FigureColumn& column : kFigures) {
    const double figure = figure_of(engine, column);
    if (all_before == nullptr) {
      add(figure, short_number(figure));
    } else if (before == nullptr) {
      add(0, "-");
    } else {
      const double rate = (figure - figure_of(*before, column)) / seconds;
      add(rate, short_number(rate));
    }
  }
  return row;
}

bool has_text(const TopRow& row, std::string_view text) {
  return std::ranges::any_of(row.cells, [&](const std::string& cell) { return cell.find(text) != cell.npos; });
}

/// Sorts texts and PIDs in ascending order, figures in descending order: the busiest engine comes first.
void sort_rows(std::vector<TopRow>& rows, std::string_view heading) {
  const auto headings = top_headings();
  const auto column = static_cast<std::size_t>(std::ranges::find(headings, heading) - headings.begin());
  std::ranges::sort(rows, [&](const TopRow& one, const TopRow& other) {
    if ((column == kProgram || column == kAddress) && one.cells[column] != other.cells[column])
      return one.cells[column] < other.cells[column];
    if (column != 0 && one.numbers[column] != other.numbers[column]) return one.numbers[column] > other.numbers[column];
    return one.numbers[0] < other.numbers[0];
  });
}

std::string counter_table(const SeenEngine& engine) {
  TextTable table({"counter", "value"});
  for (const observe::StatsCounter& counter : engine.view.counters)
    if (counter.value != 0) table.add({base::shown(text_of(counter.name), 64), fmt::format("{}", counter.value)});
  return fmt::format("\ncounters that are not 0 (`fairlead explain NAME`):\n{}", table.to_string());
}

}  // namespace

std::vector<std::string> top_headings() {
  std::vector<std::string> headings(kCounts.begin(), kCounts.end());
  for (const FigureColumn& column : kFigures) headings.emplace_back(column.heading);
  return headings;
}

std::string top_table(const SeenEngines& now, const SeenEngines* before, double seconds, const TopView& view) {
  std::vector<TopRow> rows;
  for (const SeenEngine& engine : now.engines) rows.push_back(row_of(engine, before, seconds));
  std::erase_if(rows, [&](const TopRow& row) { return !has_text(row, view.filter); });
  sort_rows(rows, view.sort);
  std::vector<std::string> headings = top_headings();
  if (before != nullptr)
    for (std::size_t i = kCounts.size(); i < headings.size(); ++i) headings[i] += "/s";
  TextTable table(std::move(headings));
  for (const std::size_t column : {kProgram, kAddress}) table.align_left(column);
  for (TopRow& row : rows) table.add(std::move(row.cells));
  std::string text = table.to_string();
  for (const UnreadableEngine& one : now.unreadable)
    text += fmt::format("{} {}: {}\n", one.pid, base::shown(one.program), one.why.message);
  if (std::ranges::any_of(now.engines, [](const SeenEngine& one) { return !one.is_fresh; }))
    text += "! does not answer: is it stopped? Its figures are those of its last answer\n";
  if (now.engines.empty() && now.unreadable.empty()) text += "no process of yours has an engine here\n";
  return text;
}

std::string top_detail(const SeenEngine& engine, Instant now) {
  std::string text = engine_heading(engine, now);
  for (const StatsPart part : {StatsPart::peers, StatsPart::ports, StatsPart::pairs}) text += part_table(engine, part);
  text += counter_table(engine);
  if (!engine.view.report.empty()) {
    text += fmt::format("\nthe last report, {} ago:\n{}", seconds_text(engine.view.header.reported_at, now),
                        base::shown_lines(engine.view.report));
  }
  return text;
}

}  // namespace fairlead::tools
