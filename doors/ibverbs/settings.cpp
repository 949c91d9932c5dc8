#include "doors/ibverbs/settings.hpp"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "base/shown.hpp"

namespace fairlead::ibverbs {
namespace {

constexpr unsigned kDevicesMax = 16;

std::string_view variable(const char* name) {
  const char* text = base::environment(name);
  return text != nullptr ? text : "";
}

void complain(const char* name, std::string_view text, const char* wanted) {
  base::log(LogLevel::warning, LogTopic::verbs, {},
            fmt::format("{}='{}': want {}; using the default", name, base::shown(text), wanted));
}

Settings read() {
  Settings settings;
  if (const auto text = variable("FAIRLEAD_PERSONALITY"); text == "ib") {
    settings.is_infiniband = true;
  } else if (!text.empty() && text != "roce") {
    complain("FAIRLEAD_PERSONALITY", text, "roce or ib");
  }
  if (const auto text = variable("FAIRLEAD_DEVICES"); !text.empty()) {
    unsigned count = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (code == std::errc() && end == text.data() + text.size() && count >= 1 && count <= kDevicesMax) {
      settings.devices = count;
    } else {
      complain("FAIRLEAD_DEVICES", text, "a number from 1 to 16");
    }
  }
  settings.explains = variable("FAIRLEAD_EXPLAIN") == "1";
  return settings;
}

}  // namespace

const Settings& settings() {
  static const Settings* const settings = new Settings(read());
  return *settings;
}

}  // namespace fairlead::ibverbs
