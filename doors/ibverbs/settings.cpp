#include "doors/ibverbs/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/log.hpp"
#include "base/quantity.hpp"
#include "base/settings.hpp"
#include "base/shown.hpp"
#include "engine/unknown_variables.hpp"

namespace fairlead::ibverbs {
namespace {

/// Returns what was given for a variable of engine::other_variables(). Logs a warning if it cannot be used.
std::optional<base::Setting> find_good(const base::Settings& settings, std::string_view name) {
  const auto given = settings.find(name);
  const auto& row = *std::ranges::find(engine::other_variables(), name, &engine::VariableRow::name);
  if (!given || given->text.empty() || row.is_good(given->text)) return given;
  base::log(LogLevel::warning, LogTopic::verbs, {},
            fmt::format("{}='{}': want {}; using the default", given->where, base::shown(given->text), row.wanted));
  return std::nullopt;
}

Settings read() {
  Settings settings;
  const base::Settings given = base::Settings::read_if_good();
  const auto link = find_good(given, "FAIRLEAD_PERSONALITY"), explains = find_good(given, "FAIRLEAD_EXPLAIN");
  settings.is_infiniband = link && link->text == "ib";
  settings.explains = explains && explains->text == "1";
  if (const auto devices = find_good(given, "FAIRLEAD_DEVICES"); devices && !devices->text.empty())
    settings.devices = static_cast<unsigned>(*base::parse_quantity(devices->text, "devices"));
  return settings;
}

}  // namespace

const Settings& settings() {
  static const Settings* const settings = new Settings(read());
  return *settings;
}

}  // namespace fairlead::ibverbs
