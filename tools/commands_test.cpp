// Each subcommand has examples at the end of its --help, and accepts their options.

#include "tools/commands.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>

namespace fairlead::tools {
namespace {

TEST(Commands, AllButVersionHaveExamples) {
  CLI::App app;
  int exit_code = 0;
  add_commands(app, exit_code);
  const auto shown = [](const CLI::App* each) { return !each->get_group().empty() && each->get_name() != "version"; };
  for (const CLI::App* command : std::as_const(app).get_subcommands(shown)) {
    EXPECT_NE(command->help().find("\nExamples:\n    fairlead " + command->get_name()), std::string::npos)
        << command->get_name();
  }
}

TEST(Commands, ExamplesNameOptionsThatAreThere) {
  CLI::App app;
  int exit_code = 0;
  add_commands(app, exit_code);
  for (const auto& [name, lines] : command_examples()) {
    for (const std::string_view line : lines) {
      const CLI::App* command = &app;
      std::istringstream words{std::string(line)};
      for (std::string word; words >> word && word != "--";) {
        const auto below = command->get_subcommands([&](const CLI::App* each) { return each->get_name() == word; });
        if (!below.empty()) command = below.front();
        if (word.starts_with("--")) {
          EXPECT_NE(command->get_option_no_throw(word), nullptr) << line << ": " << word;
        }
      }
      EXPECT_NE(command, &app) << line;
    }
  }
}

}  // namespace
}  // namespace fairlead::tools
