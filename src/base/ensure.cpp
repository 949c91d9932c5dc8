#include "base/ensure.hpp"

#include <cstdio>
#include <cstdlib>

namespace fairlead::base {

void fail_ensure(const char* file, int line, const char* condition, std::string_view detail) {
  fmt::print(stderr, "fairlead: invariant broken at {}:{}: {}: {}\n", file, line, condition, detail);
  std::abort();
}

}  // namespace fairlead::base
