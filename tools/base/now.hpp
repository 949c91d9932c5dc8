#pragma once

#include <fairlead/time.hpp>

namespace fairlead::tools {

inline Instant now() {
  return Instant::clock::now();
}

}  // namespace fairlead::tools
