#include "tools/perf/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/base/byte_size.hpp"
#include "tools/base/text_table.hpp"

namespace fairlead::tools {
namespace {

using Json = nlohmann::ordered_json;

double percentile_us(const PerfRow& row, double percent) {
  return row.times ? std::chrono::duration<double, std::micro>(row.times->percentile(percent)).count() : 0;
}

std::string time_text(const PerfRow& row, double percent) {
  if (row.typical_us && percent == 50) return fmt::format("{:.2f}", *row.typical_us);
  return row.times ? fmt::format("{:.2f}", percentile_us(row, percent)) : "";
}

std::string rate_text(double rate) {
  if (rate >= 1e6) return fmt::format("{:.2f} M", rate / 1e6);
  return rate >= 1e3 ? fmt::format("{:.1f} k", rate / 1e3) : fmt::format("{:.0f}", rate);
}

}  // namespace

std::string perf_table(const std::vector<PerfRow>& rows) {
  const bool has_loss = std::ranges::any_of(rows, [](const PerfRow& row) { return row.loss.has_value(); });
  std::vector<std::string> headings{"op",       "path", "size",       "p50 us",   "p90 us",    "p99 us",
                                    "p99.9 us", "GB/s", "messages/s", "cpu s/GB", "canary ns", "ours/it"};
  if (has_loss) headings.insert(headings.end(), {"loss %", "lost %"});
  TextTable table(std::move(headings));
  table.align_left(1);
  for (const PerfRow& row : rows) {
    std::vector<std::string> cells{row.op,
                                   row.path,
                                   byte_size_text(row.size),
                                   time_text(row, 50),
                                   time_text(row, 90),
                                   time_text(row, 99),
                                   time_text(row, 99.9),
                                   fmt::format("{:.3f}", row.gb_per_s),
                                   rate_text(row.messages_per_s),
                                   row.cpu_s_per_gb > 0 ? fmt::format("{:.3f}", row.cpu_s_per_gb) : "",
                                   row.canary_ns > 0 ? fmt::format("{:.0f}", row.canary_ns) : "",
                                   row.ratio ? fmt::format("{:.2f}", *row.ratio) : ""};
    if (row.loss)
      cells.insert(cells.end(), {fmt::format("{:.4g}", *row.loss * 100), fmt::format("{:.3f}", row.lost * 100)});
    table.add(std::move(cells));
  }
  return table.to_string();
}

Json perf_row_json(const PerfRow& row) {
  Json json = {{"op", row.op}, {"path", row.path}, {"size", row.size}};
  constexpr std::pair<const char*, double> kTimes[] = {
      {"p50_us", 50}, {"p90_us", 90}, {"p99_us", 99}, {"p999_us", 99.9}};
  for (const auto& [key, percent] : kTimes) json[key] = row.times ? Json(percentile_us(row, percent)) : Json(nullptr);
  if (row.typical_us) json["p50_us"] = *row.typical_us;
  json["gb_per_s"] = row.gb_per_s;
  json["messages_per_s"] = row.messages_per_s;
  json["cpu_s_per_gb"] = row.cpu_s_per_gb;
  json["canary_ns"] = row.canary_ns > 0 ? Json(row.canary_ns) : Json(nullptr);
  if (row.ratio) json["ours_to_floor"] = *row.ratio;
  if (row.loss) {
    json["loss"] = *row.loss;
    json["lost"] = row.lost;
  }
  return json;
}

std::string perf_json(const std::vector<PerfRow>& rows) {
  Json array = Json::array();
  for (const PerfRow& row : rows) array.push_back(perf_row_json(row));
  return array.dump(2) + "\n";
}

}  // namespace fairlead::tools
