// The devices that programs with verbs get, and the settings of unmodified programs. An engine reads none of these.

#include <fairlead/verbs/device.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.hpp"
#include "base/settings.hpp"
#include "base/shown.hpp"
#include "tools/doctor_host.hpp"

namespace fairlead::tools {
namespace {

bool is_personality(std::string_view text) {
  return text == "roce" || text == "ib";
}

bool is_device_count(std::string_view text) {
  constexpr std::uint64_t kDevicesMax = 16;
  const auto count = base::parse_quantity(text, "devices");
  return count && *count >= 1 && *count <= kDevicesMax;
}

bool is_switch(std::string_view text) {
  return text == "0" || text == "1";
}

/// A variable that the library of unmodified programs reads.
struct ProgramVariable {
  std::string_view name, wanted;
  bool (*is_good)(std::string_view);
};
constexpr ProgramVariable kVariables[] = {
    {"FAIRLEAD_PERSONALITY", "roce or ib", is_personality},
    {"FAIRLEAD_DEVICES", "a number from 1 to 16", is_device_count},
    {"FAIRLEAD_EXPLAIN", "1 or 0", is_switch},
};

void look_at_variables(Findings& findings, const base::Settings& settings) {
  for (const ProgramVariable& variable : kVariables) {
    const auto given = settings.find(variable.name);
    if (!given || given->text.empty() || variable.is_good(given->text)) continue;
    findings.push_back(
        {Verdict::trouble, "device",
         fmt::format("{}='{}' is ignored: want {}", given->where, base::shown(given->text), variable.wanted),
         "correct " + given->remedy});
  }
}

/// An address that no interface has is skipped silently as long as another one of the list is found.
void look_at_choice(Findings& findings, const std::vector<verbs::Device>& devices, const base::Settings& settings) {
  const auto chosen = settings.find("FAIRLEAD_DEVICE");
  if (!chosen) return;
  for (const auto part : std::views::split(chosen->text, ',')) {
    const std::string_view address(part);
    if (address.empty() || std::ranges::find(devices, address, &verbs::Device::address) != devices.end()) continue;
    findings.push_back({Verdict::trouble, "device",
                        fmt::format("{} names {}, but no interface of this host has that address", chosen->where,
                                    base::shown(address)),
                        "correct " + chosen->remedy});
  }
}

}  // namespace

void examine_devices(Findings& findings) {
  const auto settings = base::Settings::read();
  if (!settings) return;  // reported with the environment
  look_at_variables(findings, *settings);
  const auto devices = verbs::devices();
  if (!devices) return findings.push_back({Verdict::trouble, "device", devices.error().message, {}});
  look_at_choice(findings, *devices, *settings);
  std::string names;
  for (const verbs::Device& one : *devices)
    names += fmt::format("{}{} {}", names.empty() ? "" : ", ", one.name, one.address);
  findings.push_back({Verdict::good, "device", "programs with verbs see " + names, {}});
}

}  // namespace fairlead::tools
