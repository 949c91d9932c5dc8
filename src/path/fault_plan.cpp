#include "path/fault_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/shown.hpp"

namespace fairlead::path {
namespace {

constexpr std::uint32_t kPerPercent = kMillion / 100;
constexpr Share kReorderUnlessSaid{kPerPercent};

bool read_number(std::string_view text, std::uint64_t& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} && end == text.data() + text.size();
}

/// "0.25" as so many parts of `whole`, a power of ten: finer than one part is no number of ours.
std::optional<std::uint64_t> read_decimal(std::string_view text, std::uint64_t whole) {
  const std::size_t point = text.find('.');
  std::uint64_t units = 0;
  if (!read_number(text.substr(0, point), units) || units > UINT64_MAX / whole - 1) return std::nullopt;
  std::uint64_t parts = units * whole;
  if (point == std::string_view::npos) return parts;
  const std::string_view decimals = text.substr(point + 1);
  if (decimals.empty()) return std::nullopt;
  for (const char digit : decimals) {
    whole /= 10;
    if (digit < '0' || digit > '9' || whole == 0) return std::nullopt;
    parts += static_cast<std::uint64_t>(digit - '0') * whole;
  }
  return parts;
}

bool read_share(std::string_view text, Share& share) {
  if (!text.ends_with('%')) return false;
  const auto parts = read_decimal(text.substr(0, text.size() - 1), kPerPercent);
  if (!parts || *parts > kMillion) return false;
  share.per_million = static_cast<std::uint32_t>(*parts);
  return true;
}

struct TimeUnit {
  std::string_view name;
  std::uint64_t nanoseconds;
};
// The longest first, and "s" after those that end like it.
constexpr std::array<TimeUnit, 4> kTimeUnits{{{"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}, {"s", 1'000'000'000}}};

bool read_time(std::string_view text, base::Duration& time) {
  const auto* unit = std::ranges::find_if(kTimeUnits, [&](const TimeUnit& row) { return text.ends_with(row.name); });
  if (unit == kTimeUnits.end()) return false;
  const auto parts = read_decimal(text.substr(0, text.size() - unit->name.size()), unit->nanoseconds);
  if (!parts || *parts > static_cast<std::uint64_t>(FaultPlan::kTimeMax.count())) return false;
  time = base::Duration(static_cast<std::int64_t>(*parts));
  return true;
}

bool read_count(std::string_view text, std::uint32_t count_max, std::uint32_t& count) {
  std::uint64_t number = 0;
  if (!read_number(text, number) || number < 1 || number > count_max) return false;
  count = static_cast<std::uint32_t>(number);
  return true;
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
     [](std::string_view value, FaultPlan& plan) { return read_number(value, plan.seed); }},
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
  const auto count = static_cast<std::uint64_t>(time.count());
  const TimeUnit* best = &kTimeUnits[2];
  for (const TimeUnit& unit : kTimeUnits) {
    if (count % unit.nanoseconds == 0 && unit.nanoseconds > best->nanoseconds) best = &unit;
  }
  return fmt::format("{}{}", count / best->nanoseconds, best->name);
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
  // A share of 0 % is a fault switched off: its details mean nothing.
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
