#include "tools/perf/html.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <array>
#include <chrono>
#include <ctime>
#include <fstream>
#include <string_view>
#include <thread>

#include <nlohmann/json.hpp>

#include "tools/base/version.hpp"
#include "tools/doctor/host.hpp"
#include "tools/perf/page.hpp"
#include "tools/run/verbs_library.hpp"

namespace fairlead::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kPercents{0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99};

Json row_of_page(const PerfRow& row) {
  Json json = perf_row_json(row);
  if (!row.times || row.times->count() == 0) return json;
  Json times = Json::array();
  for (const double percent : kPercents)
    times.push_back(std::chrono::duration<double, std::micro>(row.times->percentile(percent)).count());
  json["percentiles"] = std::move(times);
  return json;
}

/// Escapes "<", which occurs only in strings, so that no text ends the HTML element.
std::string embedded(const Json& json) {
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace), safe;
  for (const char letter : text) safe += letter == '<' ? std::string("\\u003c") : std::string(1, letter);
  return safe;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    return colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  return {};
}

}  // namespace

std::string perf_html(const PerfPage& page) {
  Json data;
  data["title"] =
      page.rows.empty() ? "fairlead perf" : fmt::format("fairlead perf: {}, {}", page.rows[0].op, page.rows[0].path);
  data["percents"] = kPercents;
  data["rows"] = Json::array();
  for (const PerfRow& row : page.rows) data["rows"].push_back(row_of_page(row));
  data["counters"] = Json::array();
  for (const CounterLook& look : page.counters) {
    Json values = Json::object();
    for (const auto& [name, value] : look.values) values[name] = value;
    data["counters"].push_back({{"at_s", look.at_s}, {"values", std::move(values)}});
  }
  data["environment"] = page.environment;
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>fairlead perf</title>\n"
      "<style>{}{}</style>\n</head>\n<body>\n<h1></h1>\n"
      "<p class=\"note\">Read the canary first: the time that a cache line takes from one processor to the other. "
      "Compare ratios of one run, not numbers of two.</p>\n"
      "<table id=\"rows\"></table>\n<div id=\"charts\"></div>\n<h2>Where it was measured</h2>\n"
      "<table id=\"environment\" class=\"words\"></table>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n<!-- uPlot:\n{}\n-->\n<script>{}</script>\n"
      "<script>{}</script>\n</body>\n</html>\n",
      kPlotStyle, kPageStyle, embedded(data), kPlotLicense, kPlotScript, kPageScript);
}

std::vector<std::pair<std::string, std::string>> perf_environment() {
  std::vector<std::pair<std::string, std::string>> facts{{"version", version_text()}};
  const std::time_t seconds = std::time(nullptr);
  std::tm day{};
  char time[32];
  if (::gmtime_r(&seconds, &day) != nullptr && std::strftime(time, sizeof time, "%F %T UTC", &day) != 0)
    facts.emplace_back("time", time);
  utsname kernel{};
  if (::uname(&kernel) == 0) facts.emplace_back("kernel", fmt::format("{} {}", kernel.sysname, kernel.release));
  facts.emplace_back("processors", fmt::format("{} x {}", std::thread::hardware_concurrency(), processor_name()));
  for (const Finding& finding : examine_host(verbs_library())) facts.emplace_back(finding.topic, finding.text);
  return facts;
}

}  // namespace fairlead::tools
