#include "wire/drop_reason.hpp"

#include <array>

namespace fairlead::wire {

std::string_view to_string(DropReason reason) noexcept {
  static constexpr std::array<std::string_view, kDropReasons> kTexts{
      "too short",         "wrong version", "wrong kind", "wrong length", "wrong checksum",
      "reserved not zero", "bad token",     "bad hello",  "bad record",
  };
  const auto index = static_cast<std::size_t>(reason);
  return index < kTexts.size() ? kTexts[index] : "unknown reason";
}

}  // namespace fairlead::wire
