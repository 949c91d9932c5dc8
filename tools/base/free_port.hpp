#pragma once

#include <cstdint>

namespace fairlead::tools {

/// Returns a port that was free a moment ago; 0 if there is none. `kind`: SOCK_STREAM for TCP, SOCK_DGRAM for UDP.
std::uint16_t free_port(int kind);

}  // namespace fairlead::tools
