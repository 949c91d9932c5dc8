// Settings from the environment, under AMUDP's names, else GASNet's.

#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "doors/amudp/library.hpp"

namespace fairlead::amudp {
namespace {

std::pair<std::string, const char*> find_setting(const char* name) {
  for (const char* prefix : {"AMUDP_", "GASNET_"}) {
    std::string whole = prefix + std::string(name);
    if (const char* value = base::environment(whole.c_str())) return {std::move(whole), value};
  }
  return {{}, nullptr};
}

}  // namespace

const char* setting(const char* name) {
  return find_setting(name).second;
}

double number_setting(const char* name, double otherwise, NumberRange range, std::string& error) {
  const auto [whole, text] = find_setting(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  if (*end == '\0' && std::isfinite(number) && number >= range.least && number <= range.most) return number;
  error = fmt::format("{}={} is not a number from {} to {}: correct or unset it", whole, text, range.least, range.most);
  return otherwise;
}

std::vector<std::string> settings_without_effect() {
  struct Setting {
    const char* name;
    const char* reason;
    bool is_of_gasnet_too = false;  // GASNet gives the name with its own prefix another meaning
  };
  constexpr const char* kLines = "the console always writes the ranks' output in whole lines";
  constexpr const char* kBuffers = "buffers grow with the traffic";
  constexpr std::array kSettings{
      Setting{"RECVDEPTH", kBuffers},
      Setting{"SENDDEPTH", kBuffers},
      Setting{"ROUTE_OUTPUT", kLines},
      Setting{"CSPAWN_ROUTE_OUTPUT", kLines},
      Setting{"LINEBUFFERSZ", kLines},
      Setting{"FS_SYNC", "run sync after the job if its files must be on the disk"},
      Setting{"ENV_CMD", "ranks on other hosts are started with env"},
      Setting{"FREEZE", "start the ranks in a debugger, or attach one to a rank that waits", true},
      Setting{"VERBOSEENV", "fairlead options lists the settings and their values", true},
  };
  std::vector<std::string> lines;
  for (const Setting& each : kSettings) {
    const auto [whole, text] = find_setting(each.name);
    if (text == nullptr || *text == '\0' || (each.is_of_gasnet_too && !whole.starts_with("AMUDP_"))) continue;
    lines.push_back(fmt::format("{} has no effect: {}", whole, each.reason));
  }
  return lines;
}

}  // namespace fairlead::amudp
