#include "base/overcommit.hpp"

#include <fstream>

namespace fairlead::base {

bool is_memory_strict(const char* file) {
  int mode = 0;
  return std::ifstream(file) >> mode && mode == 2;
}

bool is_memory_strict() {
  static const bool is_strict = is_memory_strict("/proc/sys/vm/overcommit_memory");
  return is_strict;
}

}  // namespace fairlead::base
