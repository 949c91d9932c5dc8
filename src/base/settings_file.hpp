#pragma once
// A file of settings: TOML without tables, NAME = VALUE of whole numbers and strings. It keeps where each of them
// stands.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

namespace fairlead::base {

struct FileSetting {
  std::string name;
  std::string text;   // numbers as they are written in decimal
  std::string where;  // "fairlead.toml:3"
};

class SettingsFile {
 public:
  static constexpr std::size_t kLineMost = 4096;  // bytes; the parser follows dotted names as deep as they go

  /// Trusted as read_owned_file() has it: some settings say who may come near.
  static Result<SettingsFile> read(const std::string& path);
  static Result<SettingsFile> parse(std::string_view text, std::string_view path);

  /// In the order of their lines.
  const std::vector<FileSetting>& all() const noexcept { return all_; }
  const FileSetting* find(std::string_view name) const noexcept;

 private:
  std::vector<FileSetting> all_;
};

}  // namespace fairlead::base
