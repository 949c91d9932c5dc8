#include "tools/explain/pages.hpp"

#include <fairlead/options.hpp>

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>

#include "engine/unknown_variables.hpp"
#include "tools/explain/explain.hpp"
#include "tools/explain/word.hpp"

namespace fairlead::tools {
namespace {

// Escapes bars, which would end the cell.
std::string cell(std::string_view text) {
  std::string result;
  for (const char letter : text) result += letter == '|' ? std::string("\\|") : std::string(1, letter);
  return result;
}

std::string heading(std::initializer_list<std::string_view> columns) {
  std::string names = "|", rule = "|";
  for (const std::string_view column : columns) {
    names += fmt::format(" {} |", column);
    rule += " --- |";
  }
  return fmt::format("{}\n{}\n", names, rule);
}

/// Returns one table per kind, in the order of appearance.
std::string tables_of(std::span<const Word> words) {
  std::string text;
  std::string_view kind;
  for (const Word& word : words) {
    if (word.kind != kind) text += fmt::format("\n{}", heading({word.kind, "name", "meaning"}));
    kind = word.kind;
    text += fmt::format("| {} | `{}` | {} |\n", word.number, word.name, cell(word.sentence));
  }
  return text;
}

}  // namespace

std::string words_page() {
  std::string text =
      "# Words and numbers\n\n"
      "This page explains statuses, numbers and states; `fairlead explain WORD` explains one of them. It is generated\n"
      "from the tables in the sources; `tools_test --gtest_filter=Explain.*` compares it. Counters and settings have\n"
      "separate pages: [counters.md](counters.md), [settings.md](settings.md).\n\n"
      "## Statuses\n\nCalls return them, and events of buffers carry them.\n\n";
  text += heading({"status", "errno", "in C", "meaning"});
  for (const StatusWord& word : status_words())
    text += fmt::format("| `{}` | {} ({}) | `{}` ({}) | {} |\n", word.name, word.errno_name, -word.number, word.c_name,
                        word.c_number, cell(word.sentence));
  text += "\n## Verbs\n";
  text += tables_of(verbs_words());
  text += "\n## Connection management\n";
  text += tables_of(manager_words());
  text += "\n## Messages and active messages\n";
  text += tables_of(message_words());
  return text;
}

std::string settings_page() {
  std::string text =
      "# Settings\n\n"
      "You can make each setting in four ways:\n\n"
      "- in a program, by name (`DomainSettings`, `ContextOptions`);\n"
      "- on the command line of `fairlead`, by `--set NAME=VALUE`;\n"
      "- by a variable of the environment;\n"
      "- in a file.\n\n"
      "The program overrides the environment, and the environment overrides the file. `fairlead options` prints the\n"
      "settings with their current values, and the source of each value. A program with rights that its\n"
      "caller does not have (set-user-id) reads no variable and no file. This page is generated from the table in the\n"
      "sources; `tools_test --gtest_filter=Explain.*` compares it.\n\n"
      "## A file\n\n"
      "`FAIRLEAD_CONFIG` names a file in [TOML](https://toml.io) with the names below, and `device`, `devices`, "
      "`explain`\n"
      "and `personality` for the variables of devices:\n\n"
      "```toml\n# for all programs of this job\ngive_up_after = \"10s\"\nwindow_segments = 2048\npath = \"udp\"\n"
      "log = \"info,link=debug\"\n```\n\n"
      "The file has no tables. An unknown name, or a value that the setting does not accept, is an error with file "
      "and\n"
      "line, and no engine starts. The file must be a regular file of up to 1 MiB, owned by this user or root. No "
      "other user\n"
      "may be able to write to it or to replace it. Name it without symbolic links (in Kubernetes mount it with\n"
      "`subPath`).\n\n"
      "## Numbers\n\n";
  text += heading({"name", "variable", "default", "range", "unit", "meaning"});
  for (const OptionRow& row : option_table())
    text += fmt::format("| `{}` | `{}` | {} | {} to {} | {} | {} |\n", row.name, row.environment, row.value_default,
                        row.value_min, row.value_max, row.unit, cell(row.sentence));
  text += "\n## Words\n\n" + heading({"name", "variable", "value", "meaning"});
  for (const WordOptionRow& row : word_option_table())
    text += fmt::format("| `{}` | `{}` | {} | {} |\n", row.name, row.environment, cell(row.wanted), cell(row.sentence));
  text += "\n## Others\n\nOnly verbs read the variables of devices; `fairlead run` has options for them.\n\n";
  text += heading({"variable", "value", "meaning"});
  for (const engine::VariableRow& row : engine::other_variables())
    text += fmt::format("| `{}` | {} | {} |\n", row.name, cell(row.wanted), cell(row.sentence));
  return text;
}

}  // namespace fairlead::tools
