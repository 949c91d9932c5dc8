#pragma once
// A file of settings: TOML without tables, NAME = VALUE with integers and strings. Keeps the place of each setting.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

namespace fairlead::base {

struct FileSetting {
  std::string name;
  std::string text;   // numbers in decimal
  std::string where;  // "fairlead.toml:3"
};

class SettingsFile {
 public:
  static constexpr std::size_t kLineMost = 4096;  // bytes; the parser recurses into dotted names

  /// Requires the trust of read_owned_file(), since some settings grant access.
  static Result<SettingsFile> read(const std::string& path);
  static Result<SettingsFile> parse(std::string_view text, std::string_view path);

  /// In the order of their lines.
  const std::vector<FileSetting>& all() const noexcept { return all_; }
  const FileSetting* find(std::string_view name) const noexcept;

 private:
  std::vector<FileSetting> all_;
};

}  // namespace fairlead::base
