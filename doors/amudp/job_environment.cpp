#include "doors/amudp/job_environment.hpp"

#include <algorithm>
#include <array>

#include "base/environment.hpp"
#include "doors/amudp/library.hpp"

namespace fairlead::amudp {
namespace {

constexpr std::array<std::string_view, 5> kUsual{"AMUDP_*", "AMMPI_*", "AMX_*", "GASNET_*", "FAIRLEAD_*"};
constexpr std::array<std::string_view, 2> kSecret{"FAIRLEAD_AM_JOB", "FAIRLEAD_AM_MASTER"};

bool is_meant(std::string_view pattern, std::string_view name) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
}

bool is_named_in(std::string_view list, std::string_view name) {
  constexpr std::string_view kBetween = " ,\t\n";
  for (std::size_t at = 0; (at = list.find_first_not_of(kBetween, at)) != list.npos;) {
    const std::size_t end = std::min(list.find_first_of(kBetween, at), list.size());
    if (is_meant(list.substr(at, end - at), name)) return true;
    at = end;
  }
  return false;
}

}  // namespace

std::string job_environment(EnvironmentFor reader) {
  const char* text = setting("PASSENV");
  const std::string_view asked = text != nullptr ? text : "";
  std::string all;
  for (const std::string_view entry : base::whole_environment()) {
    const std::string_view name = entry.substr(0, entry.find('='));
    if (std::ranges::find(kSecret, name) != kSecret.end()) continue;
    const bool is_usual = std::ranges::any_of(kUsual, [&](std::string_view each) { return is_meant(each, name); });
    if (reader == EnvironmentFor::this_host || is_usual || is_named_in(asked, name)) {
      all += entry;
      all += '\0';
    }
  }
  return all;
}

}  // namespace fairlead::amudp
