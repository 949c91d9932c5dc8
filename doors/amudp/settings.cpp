// Settings from the environment, under AMUDP's names, else GASNet's.

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

}  // namespace fairlead::amudp
