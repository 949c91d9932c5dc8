#include "engine/unknown_variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/quantity.hpp"
#include "base/shown.hpp"
#include "base/similar.hpp"
#include "engine/engine_options.hpp"

namespace fairlead::engine {
namespace {

constexpr std::string_view kOurs = "FAIRLEAD_";

bool is_device_count(std::string_view text) {
  constexpr std::uint64_t kDevicesMax = 16;
  const auto count = base::parse_quantity(text, "devices");
  return count && *count >= 1 && *count <= kDevicesMax;
}

bool is_switch(std::string_view text) {
  return text == "0" || text == "1";
}

bool is_personality(std::string_view text) {
  return text == "roce" || text == "ib";
}

constexpr VariableRow kOthers[] = {
    {base::Settings::kFileVariable, "a file", "settings in TOML, for what the environment does not set"},
    {"FAIRLEAD_DEVICE", "addresses with commas",
     "addresses of this host that are RDMA devices; default: all, IPv4 first"},
    {"FAIRLEAD_DEVICES", "1 to 16", "number of devices that an unmodified program sees", is_device_count},
    {"FAIRLEAD_EXPLAIN", "1 or 0",
     "an unmodified program prints a report when it ends, with the causes of failed completions", is_switch},
    {"FAIRLEAD_PERSONALITY", "roce or ib", "the link that an unmodified program sees, RoCE or InfiniBand",
     is_personality},
};
constexpr std::string_view kFamilies[] = {"FAIRLEAD_AM_", "FAIRLEAD_TEST_"};
constexpr std::size_t kNameMax = 64;

/// Returns whether Kubernetes sets the variable in each container, for a service with the name "fairlead" or
/// "fairlead-...": FAIRLEAD_SERVICE_HOST, FAIRLEAD_SERVICE_PORT_NAME, FAIRLEAD_PORT=udp://..., FAIRLEAD_PORT_20480_UDP.
bool is_of_kubernetes(std::string_view name, std::string_view value) {
  if (name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT")) return true;
  if (name.ends_with("_PORT") && value.contains("://")) return true;
  constexpr std::string_view kPort = "_PORT_";
  const std::size_t port = name.rfind(kPort, name.find_first_of("0123456789"));
  if (port == name.npos) return false;
  const std::string_view rest = name.substr(port + kPort.size());
  const std::string_view protocol = rest.substr(std::min(rest.find_first_not_of("0123456789"), rest.size()));
  return protocol.size() < rest.size() && std::ranges::any_of(
                                              std::array<std::string_view, 3>{"_TCP", "_UDP", "_SCTP"},
                                              [&](std::string_view one) { return protocol.starts_with(one); });
}

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names;
  for (const VariableRow& row : kOthers) names.push_back(row.name);
  for (const OptionRow& row : option_table()) names.push_back(row.environment);
  for (const FormerOption& former : former_options()) names.push_back(former.environment);
  for (const WordOptionRow& row : word_option_table()) names.push_back(row.environment);
  return names;
}

std::vector<std::string> known_names_in_file() {
  std::vector<std::string> names;
  for (const std::string_view variable : known_names())
    if (variable != base::Settings::kFileVariable) names.push_back(base::Settings::name_in_file(variable));
  return names;
}

/// Returns "NAME sets nothing", and "did you mean ...?" if a known name is similar.
std::string complaint(std::string_view name, std::span<const std::string_view> known, std::size_t letters) {
  std::string line = fmt::format("{} sets nothing", base::shown(name.substr(0, kNameMax)));
  if (const auto similar = base::most_similar(name, known, letters))
    line += fmt::format(": did you mean {}?", *similar);
  return line + " (`fairlead options` lists the settings)";
}

}  // namespace

std::span<const VariableRow> other_variables() noexcept {
  return kOthers;
}

std::vector<std::string> unknown_variables(std::span<const std::string_view> environment) {
  const std::vector<std::string_view> known = known_names();
  std::vector<std::string> lines;
  for (const std::string_view entry : environment) {
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, equals), value = entry.substr(equals);
    const bool is_of_family = std::ranges::any_of(kFamilies, [&](auto family) { return name.starts_with(family); });
    if (!name.starts_with(kOurs) || is_of_family || std::ranges::find(known, name) != known.end() ||
        is_of_kubernetes(name, value))
      continue;
    lines.push_back(complaint(name, known, name.size() - kOurs.size()));
  }
  return lines;
}

Result<> check_names(const base::SettingsFile& file) {
  const std::vector<std::string> names = known_names_in_file();
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const base::FileSetting& one : file.all()) {
    if (std::ranges::find(known, one.name) != known.end()) continue;
    return std::unexpected(
        Error{Status::invalid, 0, fmt::format("{}: {}", one.where, complaint(one.name, known, one.name.size()))});
  }
  return {};
}

}  // namespace fairlead::engine
