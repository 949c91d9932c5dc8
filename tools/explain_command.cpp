// `fairlead explain` and `fairlead options`: what a status or a descriptor means, what can be set.
#include <fairlead/options.hpp>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>

#include "base/environment.hpp"
#include "base/shown.hpp"
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

/// What the environment says now, as far as it is fit to be printed; engines of programs that are started from here
/// obey it.
std::optional<std::string> set_to(std::string_view variable) {
  const char* const text = base::environment(std::string(variable).c_str());
  return text == nullptr ? std::nullopt : std::optional(base::shown(text));
}

std::string option_lines() {
  TextTable table({"option", "default", "set", "range", "unit", "environment", "meaning"});
  for (const std::size_t column : {4, 5, 6}) table.align_left(column);
  for (const OptionRow& option : option_table()) {
    table.add({std::string(option.name), fmt::format("{}", option.value_default),
               set_to(option.environment).value_or(""), fmt::format("{}..{}", option.value_min, option.value_max),
               std::string(option.unit), std::string(option.environment), std::string(option.sentence)});
  }
  for (const WordOptionRow& option : word_option_table()) {
    table.add({std::string(option.name), "", set_to(option.environment).value_or(""), "", std::string(option.wanted),
               std::string(option.environment), std::string(option.sentence)});
  }
  return table.to_string();
}

std::string options_json() {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  const auto set = [](std::string_view variable) {
    const auto text = set_to(variable);
    return text ? nlohmann::ordered_json(*text) : nlohmann::ordered_json(nullptr);
  };
  for (const OptionRow& option : option_table()) {
    all.push_back({{"name", option.name},
                   {"default", option.value_default},
                   {"min", option.value_min},
                   {"max", option.value_max},
                   {"unit", option.unit},
                   {"environment", option.environment},
                   {"set", set(option.environment)},
                   {"meaning", option.sentence}});
  }
  for (const WordOptionRow& option : word_option_table()) {
    all.push_back({{"name", option.name},
                   {"wanted", option.wanted},
                   {"environment", option.environment},
                   {"set", set(option.environment)},
                   {"meaning", option.sentence}});
  }
  return all.dump(2) + "\n";
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
  const auto is_json = std::make_shared<bool>(false);
  CLI::App* const options = app.add_subcommand(
      "options", "the engine's settings: --set NAME=VALUE, or the environment (FAIRLEAD_GIVE_UP_AFTER=10s)");
  options->add_flag("--json", *is_json, "for programs; `set` is what the environment says");
  options->callback([is_json, &exit_code] { exit_code = print(*is_json ? options_json() : option_lines()); });
}

}  // namespace fairlead::tools
