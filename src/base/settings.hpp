#pragma once
// Settings of the program's user: environment variables, and the file that FAIRLEAD_CONFIG names. A variable takes
// precedence over the file.

#include <optional>
#include <string>
#include <string_view>

#include <fairlead/error.hpp>

#include "base/settings_file.hpp"

namespace fairlead::base {

struct Setting {
  std::string text;
  std::string where;   // "FAIRLEAD_PATH", "--path", or "fairlead.toml:3"
  std::string remedy;  // what to correct: "or unset FAIRLEAD_PATH", "--path", or "fairlead.toml:3"
};

class Settings {
 public:
  static constexpr const char* kFileVariable = "FAIRLEAD_CONFIG";

  Settings() = default;  // the environment alone
  explicit Settings(SettingsFile file) : file_(std::move(file)) {}
  /// Reads the settings, again at each call. An error names the file, the line and the variable.
  static Result<Settings> read();
  /// For callers that ignore an unusable file: engines report it.
  static Settings read_if_good() { return read().value_or(Settings()); }

  /// Finds a setting by its variable's name.
  std::optional<Setting> find(std::string_view variable) const;
  const SettingsFile& file() const noexcept { return file_; }

  /// Errors about the variable then name the option by which the user has set it. Call it before other threads start.
  static void name_option(std::string_view variable, std::string_view option);
  /// Returns how the user knows the variable: the option, if it has one, or the variable itself.
  static std::string name_for_users(std::string_view variable);

  /// Returns the name in the file of a variable: ack_delay for FAIRLEAD_ACK_DELAY.
  static std::string name_in_file(std::string_view variable);

 private:
  SettingsFile file_;
};

}  // namespace fairlead::base
