#include "base/settings_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/owned_file.hpp"
#include "base/shown.hpp"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace fairlead::base {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors put it at the start of a file

std::string place_of(std::string_view path, std::size_t line) {
  return fmt::format("{}:{}", shown(path, kPathShown), line);
}

std::unexpected<Error> wrong_setting(const std::string& where, std::string_view why) {
  return std::unexpected(Error{Status::invalid, 0, fmt::format("{}: {}", where, why)});
}

/// Returns a line without comments and quoted text. Texts of several lines begin like an empty one.
std::string bare_part(std::string_view line) {
  std::string bare;
  char quote = 0;
  for (std::size_t i = 0; i < line.size() && (quote != 0 || line[i] != '#'); ++i) {
    if (quote == '"' && line[i] == '\\') {
      ++i;
    } else if (quote == line[i]) {
      quote = 0;
    } else if (quote == 0 && (line[i] == '"' || line[i] == '\'')) {
      quote = line[i];
    } else if (quote == 0) {
      bare += line[i];
    }
  }
  return bare;
}

/// Rejects what the parser must not see. It handles dotted names by recursion, and toml++ 3.3 has undefined behaviour
/// for malformed tables and for non-ASCII letters outside of texts. Settings need neither.
std::string_view danger_in_line(std::string_view line) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+.:= \t\r";
  if (line.size() > SettingsFile::kLineMost) return "a line of more than 4096 bytes";
  if (line.contains("\"\"\"") || line.contains("'''")) return "a text of several lines: write it in one";
  if (bare_part(line).find_first_not_of(kLetters) != std::string::npos)
    return "want NAME = VALUE, a whole number or a text in quotes; there are no tables and lists";
  return {};
}

Result<> check_lines(std::string_view text, std::string_view path) {
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const auto danger = danger_in_line(text.substr(0, end)); !danger.empty())
      return wrong_setting(place_of(path, line), danger);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char letter) { return letter < ' ' || letter == 0x7f; });
}

/// Returns the value in the form of an environment variable.
std::optional<std::string> text_of_value(const toml::node& value) {
  if (const auto* number = value.as_integer()) return fmt::to_string(number->get());
  const auto* text = value.as_string();
  return text == nullptr || has_control(text->get()) ? std::nullopt : std::optional(text->get());
}

}  // namespace

Result<SettingsFile> SettingsFile::read(const std::string& path) {
  const auto text = read_owned_file(path, FileTrust::trusted);
  if (!text) return std::unexpected(text.error());
  return parse(*text, path);
}

Result<SettingsFile> SettingsFile::parse(std::string_view text, std::string_view path) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (auto good = check_lines(text, path); !good) return std::unexpected(std::move(good.error()));
  const toml::parse_result table = toml::parse(text);
  if (!table)
    return wrong_setting(place_of(path, table.error().source().begin.line),
                         shown(table.error().description(), kPathShown));

  std::vector<std::pair<std::size_t, FileSetting>> found;
  for (const auto& [name, value] : table.table()) {
    const std::size_t line = name.source().begin.line;
    auto read = text_of_value(value);
    if (!read)
      return wrong_setting(
          place_of(path, line),
          fmt::format("{} takes a whole number, or a text in quotes on one line: \"10s\"", shown(name.str())));
    found.emplace_back(line, FileSetting{std::string(name.str()), std::move(*read), place_of(path, line)});
  }
  std::ranges::sort(found, {}, [](const auto& one) { return one.first; });
  SettingsFile file;
  for (auto& [line, setting] : found) file.all_.push_back(std::move(setting));
  return file;
}

const FileSetting* SettingsFile::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(all_, name, &FileSetting::name);
  return found == all_.end() ? nullptr : &*found;
}

}  // namespace fairlead::base
