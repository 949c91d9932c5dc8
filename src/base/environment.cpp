#include "base/environment.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>

namespace fairlead::base {

bool may_believe_environment() noexcept {
  return ::getauxval(AT_SECURE) == 0;
}

const char* environment(const char* name) noexcept {
  return ::secure_getenv(name);
}

std::vector<std::string_view> whole_environment() {
  if (!may_believe_environment() || environ == nullptr) return {};
  std::vector<std::string_view> all;
  for (char** each = environ; *each != nullptr; ++each) all.emplace_back(*each);
  return all;
}

}  // namespace fairlead::base
