#include "wire/drop_reason.hpp"

#include <array>

namespace fairlead::wire {

namespace {

struct DropRow {
  std::string_view text, sentence;
};

// In the order of the enumerators of DropReason.
constexpr std::array<DropRow, kDropReasons> kDropRows{{
    {"too short", "fewer bytes than a segment header"},
    {"wrong version", "of another version of the protocol, or of another protocol"},
    {"wrong kind", "an unknown kind of segment"},
    {"wrong length", "the header names another length than arrived, or than this kind has"},
    {"wrong checksum", "damaged in transit"},
    {"reserved not zero", "bits are set that this version sends as zero"},
    {"bad token", "an unexpected token, or a missing one"},
    {"bad hello", "a hello with impossible values"},
    {"bad record", "a record that does not fit its segment, or of an unknown kind"},
}};
static_assert(!kDropRows.back().sentence.empty());

}  // namespace

std::string_view to_string(DropReason reason) noexcept {
  const auto index = static_cast<std::size_t>(reason);
  return index < kDropReasons ? kDropRows[index].text : "unknown reason";
}

std::string_view explain(DropReason reason) noexcept {
  const auto index = static_cast<std::size_t>(reason);
  return index < kDropReasons ? kDropRows[index].sentence : std::string_view();
}

}  // namespace fairlead::wire
