#include "base/settings.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <utility>

#include "base/environment.hpp"

namespace fairlead::base {

namespace {

/// Options by the variables that they set.
std::map<std::string, std::string, std::less<>>& options() {
  static std::map<std::string, std::string, std::less<>> all;
  return all;
}

}  // namespace

Result<Settings> Settings::read() {
  const char* const path = environment(kFileVariable);
  if (path == nullptr || *path == '\0') return Settings();
  auto file = SettingsFile::read(path);
  if (file) return Settings(std::move(*file));
  file.error().message += fmt::format("; correct it, or unset {}", kFileVariable);
  return std::unexpected(std::move(file.error()));
}

std::optional<Setting> Settings::find(std::string_view variable) const {
  const std::string name(variable);
  if (const char* text = environment(name.c_str())) {
    const std::string where = name_for_users(variable);
    return Setting{text, where, where == name ? "or unset " + name : where};
  }
  const FileSetting* const line = file_.find(name_in_file(variable));
  if (line == nullptr) return std::nullopt;
  return Setting{line->text, line->where, line->where};
}

void Settings::name_option(std::string_view variable, std::string_view option) {
  options().insert_or_assign(std::string(variable), std::string(option));
}

std::string Settings::name_for_users(std::string_view variable) {
  const auto option = options().find(variable);
  return option == options().end() ? std::string(variable) : option->second;
}

std::string Settings::name_in_file(std::string_view variable) {
  constexpr std::string_view kPrefix = "FAIRLEAD_";
  if (variable.starts_with(kPrefix)) variable.remove_prefix(kPrefix.size());
  std::string name(variable);
  for (char& letter : name)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return name;
}

}  // namespace fairlead::base
