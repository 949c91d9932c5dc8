#pragma once
// What whoever started the program has set: by variables of the environment, and by the file that one of them names,
// FAIRLEAD_CONFIG. A variable wins over the file.

#include <optional>
#include <string>
#include <string_view>

#include <fairlead/error.hpp>

#include "base/settings_file.hpp"

namespace fairlead::base {

struct Setting {
  std::string text;
  std::string where;   // "FAIRLEAD_PATH", or "fairlead.toml:3"
  std::string remedy;  // behind "correct": "or unset FAIRLEAD_PATH", or "fairlead.toml:3"
};

class Settings {
 public:
  static constexpr const char* kFileVariable = "FAIRLEAD_CONFIG";

  Settings() = default;  // the environment alone
  explicit Settings(SettingsFile file) : file_(std::move(file)) {}
  /// Each time anew. An error names the file, the line and the variable.
  static Result<Settings> read();
  /// For those whom a file that cannot be used is not worth an error: the engines tell it.
  static Settings read_if_good() { return read().value_or(Settings()); }

  /// By the variable's name.
  std::optional<Setting> find(std::string_view variable) const;
  const SettingsFile& file() const noexcept { return file_; }

  /// How the file calls what is FAIRLEAD_ACK_DELAY in the environment: ack_delay.
  static std::string name_in_file(std::string_view variable);

 private:
  SettingsFile file_;
};

}  // namespace fairlead::base
