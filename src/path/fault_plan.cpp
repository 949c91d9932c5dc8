#include "path/fault_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/quantity.hpp"
#include "base/shown.hpp"

namespace fairlead::path {
namespace {

constexpr std::uint32_t kPerPercent = kMillion / 100;
constexpr Share kReorderUnlessSaid{kPerPercent};

bool read_share(std::string_view text, Share& share) {
  const auto parts = base::parse_quantity(text, "ppm");
  if (!base::has_unit(text) || !parts || *parts > kMillion) return false;
  share.per_million = static_cast<std::uint32_t>(*parts);
  return true;
}

bool read_time(std::string_view text, base::Duration& time) {
  const auto parts = base::parse_quantity(text, "ns");
  if (!base::has_unit(text) || !parts || *parts > static_cast<std::uint64_t>(FaultPlan::kTimeMax.count())) return false;
  time = base::Duration(static_cast<std::int64_t>(*parts));
  return true;
}

bool read_count(std::string_view text, std::uint32_t count_max, std::uint32_t& count) {
  const auto number = base::parse_quantity(text, "datagrams");
  if (!number || *number < 1 || *number > count_max) return false;
  count = static_cast<std::uint32_t>(*number);
  return true;
}

bool read_seed(std::string_view text, std::uint64_t& seed) {
  const auto number = base::parse_quantity(text, "");
  if (number) seed = *number;
  return number.has_value();
}

// "5:64" or "2%:5:64".
bool read_reorder(std::string_view text, FaultPlan& plan) {
  plan.reorder = kReorderUnlessSaid;
  if (const std::size_t percent = text.find("%:"); percent != std::string_view::npos) {
    if (!read_share(text.substr(0, percent + 1), plan.reorder)) return false;
    text.remove_prefix(percent + 2);
  }
  const std::size_t colon = text.find(':');
  return colon != std::string_view::npos &&
         read_count(text.substr(0, colon), FaultPlan::kDistanceMax, plan.distance_min) &&
         read_count(text.substr(colon + 1), FaultPlan::kDistanceMax, plan.distance_max) &&
         plan.distance_min <= plan.distance_max;
}

struct Word {
  std::string_view key;
  std::string_view form;  // of the value, with its range
  std::string_view example;
  bool (*read)(std::string_view value, FaultPlan& plan);
};

constexpr std::array<Word, 9> kWords{{
    {"drop", "a share from 0% to 100%", "drop=1%",
     [](std::string_view value, FaultPlan& plan) { return read_share(value, plan.drop); }},
    {"burst", "how many datagrams each loss takes, 1 to 1000", "burst=40",
     [](std::string_view value, FaultPlan& plan) { return read_count(value, FaultPlan::kBurstMax, plan.burst); }},
    {"reorder", "FROM:TO datagrams (1 to 1000), with a share before them if not 1%", "reorder=5:64 or reorder=2%:5:64",
     read_reorder},
    {"hold", "a time up to 10s", "hold=1ms",
     [](std::string_view value, FaultPlan& plan) { return read_time(value, plan.hold); }},
    {"duplicate", "a share from 0% to 100%", "duplicate=1%",
     [](std::string_view value, FaultPlan& plan) { return read_share(value, plan.duplicate); }},
    {"corrupt", "a share from 0% to 100%", "corrupt=0.1%",
     [](std::string_view value, FaultPlan& plan) { return read_share(value, plan.corrupt); }},
    {"delay", "a time up to 10s", "delay=1ms",
     [](std::string_view value, FaultPlan& plan) { return read_time(value, plan.delay); }},
    {"jitter", "a time up to 10s", "jitter=200us",
     [](std::string_view value, FaultPlan& plan) { return read_time(value, plan.jitter); }},
    {"seed", "a number of up to 64 bits", "seed=7",
     [](std::string_view value, FaultPlan& plan) { return read_seed(value, plan.seed); }},
}};

std::unexpected<Error> wrong(std::string message) {
  return std::unexpected(Error{Status::invalid, 0, std::move(message)});
}

std::string text_of(Share share) {
  std::string text = fmt::format("{}.{:04}", share.per_million / kPerPercent, share.per_million % kPerPercent);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + "%";
}

std::string text_of(base::Duration time) {
  constexpr std::pair<const char*, std::int64_t> kUnits[] = {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}};
  for (const auto& [name, nanoseconds] : kUnits)
    if (time.count() % nanoseconds == 0) return fmt::format("{}{}", time.count() / nanoseconds, name);
  return fmt::format("{}ns", time.count());
}

}  // namespace

Result<FaultPlan> FaultPlan::parse(std::string_view text) {
  FaultPlan plan;
  std::array<bool, kWords.size()> is_given{};
  const auto has = [&](std::string_view key) {
    return is_given[static_cast<std::size_t>(std::ranges::find(kWords, key, &Word::key) - kWords.begin())];
  };
  for (bool is_more = !text.empty(); is_more;) {
    const std::size_t comma = text.find(',');
    const std::string_view given = text.substr(0, comma);
    is_more = comma != std::string_view::npos;
    if (is_more) text.remove_prefix(comma + 1);

    const std::size_t equals = given.find('=');
    const auto* word = std::ranges::find(kWords, given.substr(0, equals), &Word::key);
    if (word == kWords.end())
      return wrong(
          fmt::format("fault '{}' is unknown: want words such as drop=1%, separated by commas, out of drop, "
                      "burst, reorder, hold, duplicate, corrupt, delay, jitter, seed",
                      base::shown(given)));
    if (equals == std::string_view::npos || !word->read(given.substr(equals + 1), plan))
      return wrong(
          fmt::format("fault '{}': {} takes {}, e.g. {}", base::shown(given), word->key, word->form, word->example));
    if (std::exchange(is_given[static_cast<std::size_t>(word - kWords.begin())], true))
      return wrong(fmt::format("fault '{}': {} is given twice: keep one", base::shown(given), word->key));
  }
  if (has("burst") && !has("drop"))
    return wrong("fault 'burst' says how losses come, but nothing is lost: add drop=1%");
  if (has("hold") && !has("reorder"))
    return wrong(
        "fault 'hold' bounds how long reordering holds a datagram, but nothing is reordered: add reorder=5:64");
  const FaultPlan none;
  // A share of 0 % switches the fault off, so its details are ignored.
  if (plan.drop == Share{}) plan.burst = none.burst;
  if (plan.reorder == Share{}) {
    plan.distance_min = none.distance_min;
    plan.distance_max = none.distance_max;
    plan.hold = none.hold;
  }
  return plan;
}

std::string FaultPlan::to_string() const {
  const FaultPlan none;
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  };
  if (drop != none.drop) add("drop", text_of(drop));
  if (burst != none.burst) add("burst", fmt::to_string(burst));
  if (reorder == kReorderUnlessSaid)
    add("reorder", fmt::format("{}:{}", distance_min, distance_max));
  else if (reorder != none.reorder)
    add("reorder", fmt::format("{}:{}:{}", text_of(reorder), distance_min, distance_max));
  if (hold != none.hold) add("hold", text_of(hold));
  if (duplicate != none.duplicate) add("duplicate", text_of(duplicate));
  if (corrupt != none.corrupt) add("corrupt", text_of(corrupt));
  if (delay != none.delay) add("delay", text_of(delay));
  if (jitter != none.jitter) add("jitter", text_of(jitter));
  if (seed != none.seed) add("seed", fmt::to_string(seed));
  return text;
}

bool FaultPlan::has_faults() const noexcept {
  FaultPlan same_seed;
  same_seed.seed = seed;
  return *this != same_seed;
}

}  // namespace fairlead::path
