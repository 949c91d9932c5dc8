// `fairlead explain` and `fairlead options`: the meaning of a status or descriptor, and the settings.
#include <fairlead/options.hpp>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <memory>
#include <string>

#include "base/settings.hpp"
#include "base/shown.hpp"
#include "engine/unknown_variables.hpp"
#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/base/text_table.hpp"
#include "tools/explain/explain.hpp"

namespace fairlead::tools {
namespace {

int print(const Result<std::string>& text) {
  if (!text) return report_error(text.error());
  fmt::print("{}", *text);
  return kExitOk;
}

/// A setting's current value, made safe to print. Programs started from here use it.
struct Given {
  std::string value, from;  // "10s", "FAIRLEAD_GIVE_UP_AFTER"; both empty: not set
};

Given given(const base::Settings& settings, std::string_view variable) {
  const auto found = settings.find(variable);
  return found ? Given{base::shown(found->text), base::shown(found->where, 200)} : Given{};
}

std::string option_lines(const base::Settings& settings) {
  TextTable table({"option", "default", "set", "by", "range", "unit", "environment", "meaning"});
  for (const std::size_t column : {3, 5, 6, 7}) table.align_left(column);
  for (const OptionRow& option : option_table()) {
    const auto [value, from] = given(settings, option.environment);
    table.add({std::string(option.name), fmt::format("{}", option.value_default), value, from,
               fmt::format("{}..{}", option.value_min, option.value_max), std::string(option.unit),
               std::string(option.environment), std::string(option.sentence)});
  }
  for (const WordOptionRow& option : word_option_table()) {
    const auto [value, from] = given(settings, option.environment);
    table.add({std::string(option.name), "", value, from, "", std::string(option.wanted),
               std::string(option.environment), std::string(option.sentence)});
  }
  for (const engine::VariableRow& row : engine::other_variables()) {
    const auto [value, from] = given(settings, row.name);
    table.add({base::Settings::name_in_file(row.name), "", value, from, "", std::string(row.wanted),
               std::string(row.name), std::string(row.sentence)});
  }
  return table.to_string();
}

std::string options_json(const base::Settings& settings) {
  using nlohmann::ordered_json;
  ordered_json all = ordered_json::array();
  const auto add = [&](ordered_json row, std::string_view variable, std::string_view sentence) {
    const auto [value, from] = given(settings, variable);
    row["environment"] = variable;
    row["set"] = from.empty() ? ordered_json(nullptr) : ordered_json(value);
    row["from"] = from.empty() ? ordered_json(nullptr) : ordered_json(from);
    row["meaning"] = sentence;
    all.push_back(std::move(row));
  };
  for (const OptionRow& option : option_table()) {
    add({{"name", option.name},
         {"default", option.value_default},
         {"min", option.value_min},
         {"max", option.value_max},
         {"unit", option.unit}},
        option.environment, option.sentence);
  }
  for (const WordOptionRow& option : word_option_table())
    add({{"name", option.name}, {"wanted", option.wanted}}, option.environment, option.sentence);
  for (const engine::VariableRow& row : engine::other_variables())
    add({{"name", base::Settings::name_in_file(row.name)}, {"wanted", row.wanted}}, row.name, row.sentence);
  return all.dump(2) + "\n";
}

Result<std::string> options_text(bool is_json) {
  const auto settings = base::Settings::read();
  if (!settings) return std::unexpected(settings.error());
  if (auto known = engine::check_names(settings->file()); !known) return std::unexpected(std::move(known.error()));
  return is_json ? options_json(*settings) : option_lines(*settings);
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* explain_app = app.add_subcommand("explain", "explain a status, a number, a counter or a buffer descriptor");
  explain_app->add_option(
      "WORD", *words,
      "a status (silent, FAIRLEAD_SILENT), an errno (ETIMEDOUT, -110), a completion status (12, retry_exc_err, or its "
      "text), vendor_err (vendor_err 2), an event (RDMA_CM_EVENT_REJECTED, peer_gone), a state (RTS), a setting, a "
      "counter (link.resends_fast) or the last word of its name (replayed), or a descriptor "
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
      "options", "list the settings and their sources: the environment (FAIRLEAD_GIVE_UP_AFTER=10s), or a file");
  options->add_flag(
      "--json", *is_json,
      "print JSON for programs; `set` is the value of the environment or the file, `from` says which of them");
  options->callback([is_json, &exit_code] { exit_code = print(options_text(*is_json)); });
}

}  // namespace fairlead::tools
