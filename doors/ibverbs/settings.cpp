#include "doors/ibverbs/settings.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/quantity.hpp"
#include "base/settings.hpp"
#include "base/shown.hpp"

namespace fairlead::ibverbs {
namespace {

constexpr unsigned kDevicesMax = 16;

void complain(const base::Setting& given, const char* wanted) {
  base::log(LogLevel::warning, LogTopic::verbs, {},
            fmt::format("{}='{}': want {}; using the default", given.where, base::shown(given.text), wanted));
}

Settings read() {
  Settings settings;
  const base::Settings given = base::Settings::read_if_good();
  if (const auto link = given.find("FAIRLEAD_PERSONALITY"); link && link->text == "ib") {
    settings.is_infiniband = true;
  } else if (link && !link->text.empty() && link->text != "roce") {
    complain(*link, "roce or ib");
  }
  if (const auto devices = given.find("FAIRLEAD_DEVICES"); devices && !devices->text.empty()) {
    const auto count = base::parse_quantity(devices->text, "devices");
    if (count && *count >= 1 && *count <= kDevicesMax) {
      settings.devices = static_cast<unsigned>(*count);
    } else {
      complain(*devices, "a number from 1 to 16");
    }
  }
  const auto explains = given.find("FAIRLEAD_EXPLAIN");
  settings.explains = explains && explains->text == "1";
  if (explains && !settings.explains && !explains->text.empty() && explains->text != "0") complain(*explains, "1 or 0");
  return settings;
}

}  // namespace

const Settings& settings() {
  static const Settings* const settings = new Settings(read());
  return *settings;
}

}  // namespace fairlead::ibverbs
