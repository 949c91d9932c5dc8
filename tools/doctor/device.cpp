// The devices that programs with verbs get, and the settings of unmodified programs. An engine reads none of these.

#include <fairlead/verbs/device.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.hpp"
#include "base/shown.hpp"
#include "engine/unknown_variables.hpp"
#include "tools/doctor/host.hpp"

namespace fairlead::tools {
namespace {

void look_at_variables(Findings& findings, const base::Settings& settings) {
  for (const engine::VariableRow& variable : engine::other_variables()) {
    const auto given = settings.find(variable.name);
    if (variable.is_good == nullptr || !given || given->text.empty() || variable.is_good(given->text)) continue;
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
