#pragma once
// All settings, in one table. Set them by environment variable, or by name in net::DomainSettings.

#include <cstdint>
#include <span>
#include <string_view>

namespace fairlead {

/// One row: an unsigned number with its unit.
struct OptionRow {
  std::string_view name;               ///< "ack_delay"
  std::string_view unit;               ///< "us", "bytes", "segments", ...
  std::uint64_t value_default;         ///< in `unit`, like the bounds
  std::uint64_t value_min, value_max;  ///< both are allowed
  std::string_view environment;        ///< "FAIRLEAD_ACK_DELAY"
  std::string_view sentence;           ///< what it does; begins in lower case, without a full stop
};

/// One row whose value is a word, not a number.
struct WordOptionRow {
  std::string_view name;    ///< "path"
  std::string_view wanted;  ///< "auto, udp or shm"
  std::string_view environment;
  std::string_view sentence;
};

/// All rows. They remain valid for the life of the process. Any thread.
std::span<const OptionRow> option_table() noexcept;
std::span<const WordOptionRow> word_option_table() noexcept;

}  // namespace fairlead
