#include "transport/peer_facts.hpp"

#include <fmt/format.h>

namespace fairlead::transport {

std::string release_text(std::uint32_t release) {
  if (release == 0) return {};
  return fmt::format("{}.{}.{}", release >> 16, release >> 8 & 0xFF, release & 0xFF);
}

}  // namespace fairlead::transport
