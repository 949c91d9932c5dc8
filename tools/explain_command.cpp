// `fairlead explain` and `fairlead options`: what a status or a descriptor means, what can be set.
#include <fairlead/options.hpp>

#include <fmt/format.h>

#include <memory>

#include "tools/command_line.hpp"
#include "tools/exit_code.hpp"
#include "tools/explain.hpp"
#include "tools/text_table.hpp"

namespace fairlead::tools {
namespace {

int print(const Result<std::string>& text) {
  if (!text) return report_error(text.error());
  fmt::print("{}", *text);
  return kExitOk;
}

std::string option_lines() {
  TextTable table({"option", "default", "range", "unit", "environment", "meaning"});
  for (const std::size_t column : {3, 4, 5}) table.align_left(column);
  for (const OptionRow& option : option_table()) {
    table.add({std::string(option.name), fmt::format("{}", option.value_default),
               fmt::format("{}..{}", option.value_min, option.value_max), std::string(option.unit),
               std::string(option.environment), std::string(option.sentence)});
  }
  for (const WordOptionRow& option : word_option_table()) {
    table.add({std::string(option.name), "", "", std::string(option.wanted), std::string(option.environment),
               std::string(option.sentence)});
  }
  return table.to_string();
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* explain_app =
      app.add_subcommand("explain", "what a status, a number, a counter or a buffer descriptor means");
  explain_app->add_option(
      "WORD", *words,
      "a status (silent), an errno (ETIMEDOUT, -110), a completion status (12, retry_exc_err), a vendor_err (0x2), a "
      "state (RTS), a setting, a counter (link.resends_fast) or the last word of its name (replayed), or a descriptor "
      "as 128 hex "
      "digits; none: all of them");
  explain_app->callback([words, &exit_code] {
    std::string word;
    for (const std::string& each : *words) word += (word.empty() ? "" : " ") + each;
    exit_code = print(word.empty() ? Result<std::string>(explain_all()) : explain(word));
  });
}

void add_options(CLI::App& app, int& exit_code) {
  app.add_subcommand("options", "the engine's settings: --set NAME=VALUE, or the environment")->callback([&exit_code] {
    exit_code = print(option_lines());
  });
}

}  // namespace fairlead::tools
